// The directory environment passes the exported suite, and each deliberately broken one fails exactly the test that is about it.

import * as fs from "node:fs";
import { join } from "node:path";
import type { Environment, ExecOptions, Manifest, RestoreOptions } from "agentrewind";
import { RewindError } from "agentrewind";
import { type EnvironmentInitializer, environmentSuite } from "agentrewind/conformance";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openDirectory } from "../src/environment/directory/directory.ts";
import { openStore, type Store } from "../src/store/store.ts";
import { lacking } from "./capabilities.ts";
import { makePlace, type Place } from "./helpers/workspace.ts";

interface Made {
  readonly place: Place;
  readonly store: Store;
  readonly inner: Environment;
}

type Breaker = (inner: Environment, place: Place) => Partial<Environment> | Promise<Partial<Environment>>;

/** The real directory environment, with some calls exchanged for broken ones. */
function directory(breaker: Breaker = () => ({})): EnvironmentInitializer {
  const made = new WeakMap<Environment, Made>();
  let generation = 0;
  async function open(place: Place): Promise<Environment> {
    const store = openStore(place.store);
    const { objects } = store.open("e1");
    const inner = openDirectory({
      root: place.workspace,
      objects,
      id: "e1",
      exclude: [],
      watches: true,
      cacheFile: join(place.store, "cache", "e1.tree"),
      isHeld: (snapshot) => objects.has(Buffer.from(snapshot, "hex")),
      raiseGeneration: () => ++generation,
      forks: join(place.base, "forks"),
      programs: { folder: join(place.store, "programs"), policy: undefined },
    });
    const environment: Environment = {
      ...inner,
      async close() {
        await inner.close();
        store.close();
      },
      ...(await breaker(inner, place)),
    };
    made.set(environment, { place, store, inner });
    return environment;
  }
  return {
    name: "directory",
    create: () => open(makePlace()),
    reopen: (closed) => open((made.get(closed) as Made).place),
    async damage(environment) {
      const packs = join((made.get(environment) as Made).place.store, "packs");
      for (const name of fs.readdirSync(packs)) {
        const at = fs.readFileSync(join(packs, name)).indexOf("only here");
        if (at < 0) continue;
        const fd = fs.openSync(join(packs, name), "r+");
        fs.writeSync(fd, "lost", at);
        fs.closeSync(fd);
      }
    },
  };
}

describe.each(["native", "portable"] as const)("the directory environment, %s", (path) => {
  if (path === "native" && lacking("native")) {
    test.skip("the native path needs the addon");
    return;
  }
  beforeAll(() => {
    if (path === "portable") process.env.AGENTREWIND_NATIVE = "off";
  });
  afterAll(() => {
    delete process.env.AGENTREWIND_NATIVE;
  });
  for (const { name, run } of environmentSuite(directory())) test(name, run);
});

const at = (place: Place, name: string): string => join(place.workspace, name);
const present = (path: string): boolean => fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined;
/** After a restore, does something more. */
const afterRestore =
  (spoil: (place: Place, manifest: Manifest) => void): Breaker =>
  (inner, place) => ({
    async restore(manifest, options) {
      const result = await inner.restore(manifest, options);
      spoil(place, manifest);
      return result;
    },
  });

interface Broken {
  readonly what: string;
  readonly fails: string;
  readonly alsoFails?: string;
  readonly breaker: Breaker;
}

const broken: readonly Broken[] = [
  {
    what: "the mode is lost",
    fails: "restore brings back modes",
    breaker: afterRestore((place) => present(at(place, "run.sh")) && fs.chmodSync(at(place, "run.sh"), 0o644)),
  },
  {
    what: "the time is lost",
    fails: "restore brings back times of files and folders",
    breaker: afterRestore((place) => present(at(place, "dated")) && fs.utimesSync(at(place, "dated/f"), 1, 1)),
  },
  {
    what: "a hard link is split",
    fails: "restore brings back hard links after an edit in place and after a loss",
    breaker: afterRestore((place) => {
      if (!present(at(place, "pair"))) return;
      fs.copyFileSync(at(place, "pair/b"), at(place, "pair/copy"));
      fs.renameSync(at(place, "pair/copy"), at(place, "pair/b"));
    }),
  },
  {
    what: "what was added stays",
    fails: "restore brings back the absence of what was added",
    breaker: (inner, place) => ({
      async restore(manifest, options) {
        const stays = present(at(place, "added-later"));
        const result = await inner.restore(manifest, options);
        if (stays) fs.writeFileSync(at(place, "added-later"), "2");
        return result;
      },
    }),
  },
  {
    what: "empty folders are forgotten",
    fails: "restore brings back empty folders",
    breaker: afterRestore((place) => present(at(place, "hollow/one")) && fs.rmdirSync(at(place, "hollow/one"))),
  },
  {
    what: "a symbolic link becomes a file",
    fails: "restore brings back symbolic links, whatever they lead to",
    breaker: afterRestore((place) => {
      if (!present(at(place, "good"))) return;
      fs.rmSync(at(place, "good"));
      fs.writeFileSync(at(place, "good"), "1\n");
    }),
  },
  {
    what: "a capture touches a file",
    fails: "capture changes nothing that the tools can see",
    breaker: (inner, place) => ({
      capture(options) {
        if (present(at(place, "untouched"))) fs.utimesSync(at(place, "untouched"), 1, 1);
        return inner.capture(options);
      },
    }),
  },
  {
    what: "manifests are numbered",
    fails: "two captures without a change between them give equal manifests",
    breaker: (inner) => {
      let last: string | null = null;
      return {
        exec(command, options) {
          last = null;
          return inner.exec(command, options);
        },
        capture(options) {
          const { captured, durable } = inner.capture(options);
          return {
            captured: captured.then((one) => {
              const again = one.manifest.files === last;
              last = one.manifest.files;
              return again ? { ...one, manifest: { ...one.manifest, files: `${last}0` } } : one;
            }),
            durable,
          };
        },
      };
    },
  },
  {
    what: "size and time decide what changed",
    fails: "a change gives another manifest",
    breaker: (inner, place) => {
      let first: Awaited<ReturnType<Environment["capture"]>["captured"]> | undefined;
      return {
        capture(options) {
          const { captured, durable } = inner.capture(options);
          return {
            captured: captured.then((one) => {
              const stat = fs.lstatSync(at(place, "f"), { throwIfNoEntry: false });
              if (stat?.mtime.getFullYear() === 2020 || stat?.mtime.getFullYear() === 2019) first ??= one;
              return first ?? one;
            }),
            durable,
          };
        },
      };
    },
  },
  {
    what: "a failed capture is an empty state",
    fails: "a capture that is given up rejects; it is never an empty state",
    breaker: async (inner) => {
      const empty = await inner.capture().captured;
      return {
        capture: (options) =>
          options?.signal?.aborted
            ? { captured: Promise.resolve(empty), durable: Promise.resolve() }
            : inner.capture(options),
      };
    },
  },
  {
    what: "durable comes first",
    fails: "durable is not reached before captured, and neither is left pending",
    breaker: (inner) => ({
      capture(options) {
        const { captured, durable } = inner.capture(options);
        return {
          captured: durable.then(
            () => captured,
            () => captured,
          ),
          durable,
        };
      },
    }),
  },
  {
    what: "a restore is followed through a link",
    fails: "a restore writes through no link",
    breaker: (inner, place) => ({
      async restore(manifest, options) {
        const path = at(place, "folder");
        if (present(path) && fs.lstatSync(path).isSymbolicLink()) fs.writeFileSync(join(path, "f"), "1\n");
        return inner.restore(manifest, options);
      },
    }),
  },
  {
    what: "what was changed meanwhile is overwritten",
    fails: "what was changed after the captured state that a restore starts from is not overwritten",
    breaker: (inner) => ({
      restore: (manifest, { since: _, ...options }: RestoreOptions = {}) => inner.restore(manifest, options),
    }),
  },
  {
    what: "keep is ignored",
    fails: "what is to be kept keeps its present state",
    breaker: (inner) => ({
      restore: (manifest, { keep: _, ...options }: RestoreOptions = {}) => inner.restore(manifest, options),
    }),
  },
  {
    what: "what did not come back is not named",
    fails: "what cannot be brought back is named, and the rest comes back",
    alsoFails: "what was changed after the captured state that a restore starts from is not overwritten",
    breaker: (inner) => ({
      restore: async (manifest, options) => ({ ...(await inner.restore(manifest, options)), notRestored: [] }),
    }),
  },
  {
    what: "a second restore is not idempotent",
    fails: "restore again changes nothing",
    breaker: afterRestore((place) => {
      if (!present(at(place, "twice"))) return;
      if (present(at(place, "mark"))) fs.appendFileSync(at(place, "twice/f"), "x");
      fs.writeFileSync(at(place, "mark"), "");
    }),
  },
  {
    what: "half a restore of an unknown state",
    fails: "a state that is not there is refused, with nothing touched",
    breaker: (inner, place) => ({
      async restore(manifest, options) {
        if (manifest.files === "0".repeat(64)) fs.rmSync(at(place, "still-here"));
        return inner.restore(manifest, options);
      },
    }),
  },
  {
    what: "half a restore where an object is missing",
    fails: "a state of which a part is missing is refused, with nothing touched",
    breaker: (inner, place) => ({
      async restore(manifest, options) {
        if (present(at(place, "zz"))) fs.rmSync(at(place, "zz"));
        return inner.restore(manifest, options);
      },
    }),
  },
  {
    what: "the generation stands still",
    fails: "generation counts the restores, and moved is given only where the handle changes",
    breaker: (inner) => ({
      restore: async (manifest, options) => ({ ...(await inner.restore(manifest, options)), generation: 1 }),
    }),
  },
  {
    what: "the signal of a restore is ignored",
    fails: "a restore that is given up at once touches nothing",
    breaker: (inner) => ({
      restore: (manifest, { signal: _, ...options }: RestoreOptions = {}) => inner.restore(manifest, options),
    }),
  },
  {
    what: "states end with close",
    fails: "states outlive close",
    breaker: (inner, place) => {
      const marker = join(place.base, "closed");
      return {
        async close() {
          fs.writeFileSync(marker, "");
        },
        restore(manifest, options) {
          if (present(marker)) throw new RewindError("NOT_RESTORABLE", "Forgotten.");
          return inner.restore(manifest, options);
        },
      };
    },
  },
  {
    what: "a rename is a loss and a gain",
    fails: "diff names a certain rename once, not as a loss and a gain",
    breaker: (inner) => ({
      async diff(from, to) {
        const { renamed, added, removed, ...rest } = await inner.diff(from, to);
        return {
          ...rest,
          added: [...added, ...renamed.map((one) => one.to)],
          removed: [...removed, ...renamed.map((one) => one.from)],
          renamed: [],
        };
      },
    }),
  },
  {
    what: "verify looks at nothing but the name",
    fails: "verify names what a damaged state lacks",
    breaker: (inner) => ({
      verify: async (manifest) =>
        manifest.files === "0".repeat(64) ? inner.verify(manifest) : ([] as Awaited<ReturnType<Environment["verify"]>>),
    }),
  },
  {
    what: "the time limit is ignored",
    fails: "exec ends a command, and what it started, when its time is over",
    breaker: (inner) => ({
      exec: (command, { timeoutMs: _, ...options }: ExecOptions = {}) => inner.exec(command, options),
    }),
  },
  {
    what: "the signal of a command is ignored",
    fails: "exec ends a command when its signal is raised",
    breaker: (inner) => ({
      exec: (command, { signal: _, ...options }: ExecOptions = {}) => inner.exec(command, options),
    }),
  },
  {
    what: "signals become exit codes",
    fails: "exec names the signal that ended a command",
    breaker: (inner) => ({
      async exec(command, options) {
        const result = await inner.exec(command, options);
        return result.signal === "SIGTERM" ? { ...result, exitCode: 143, signal: null } : result;
      },
    }),
  },
  {
    what: "links are followed out of the environment",
    fails: "a link that leads out is followed neither for reading nor for writing",
    breaker: (inner, place) => ({
      readFile: async (path) =>
        ["out/f", "file"].includes(path) ? fs.readFileSync(at(place, path)) : inner.readFile(path),
    }),
  },
  {
    what: "paths are ignored",
    fails: "with paths, only these go back",
    breaker: (inner) => ({
      restore: (manifest, { paths, ...options } = {}) =>
        inner.restore(manifest, paths?.has("part/deep") ? options : { ...options, ...(paths && { paths }) }),
    }),
  },
  {
    what: "unknown paths are passed over",
    fails: "a path that neither state has is refused, with nothing touched",
    breaker: (inner) => ({
      restore: (manifest, { paths, ...options } = {}) =>
        inner.restore(manifest, {
          ...options,
          ...(paths && { paths: new Set([...paths].filter((path) => path !== "not-known")) }),
        }),
    }),
  },
  {
    what: "a dry run is none",
    fails: "a dry run says what a restore would do, and touches nothing",
    breaker: (inner) => ({ restore: (manifest, { dryRun: _, ...options } = {}) => inner.restore(manifest, options) }),
  },
  {
    what: "commands go on",
    fails: "settle ends the commands that still run",
    breaker: (inner, place) => ({
      async settle() {
        await inner.settle?.();
        if (present(at(place, "begun"))) fs.writeFileSync(at(place, "late"), "late");
      },
    }),
  },
  {
    what: "what was started since goes on",
    fails: "a restore ends what exec has left running since",
    breaker: (inner) => ({
      restore: (manifest, options) =>
        inner.restore(manifest, { ...options, ...(manifest.processes === null ? { programs: "keep" } : {}) }),
    }),
  },
  {
    what: "what ran then is forgotten",
    fails: "what exec had left running is there after a restore, or named",
    breaker: (inner) => ({
      restore: (manifest, options) =>
        inner.restore(manifest, { ...options, ...(manifest.processes === null ? {} : { programs: "keep" }) }),
    }),
  },
  {
    what: "forks are of the present state",
    fails: "forks are equal to the state, whatever the environment holds now",
    breaker: (inner, place) => ({
      fork: async (manifest, count, options) =>
        inner.fork?.(
          present(at(place, "later")) ? (await inner.capture().captured).manifest : manifest,
          count,
          options,
        ) ?? [],
    }),
  },
  {
    what: "forks share their files",
    fails: "a write in a fork is seen in no other, and not in the environment",
    breaker: (inner, place) => ({
      async fork(manifest, count, options) {
        const forks = (await inner.fork?.(manifest, count, options)) ?? [];
        if (!present(at(place, "shared"))) return forks;
        for (const fork of forks) {
          const file = fork.path("shared") as string;
          fs.rmSync(file);
          fs.linkSync(at(place, "shared"), file);
        }
        return forks;
      },
    }),
  },
  {
    what: "a fork of nothing is empty",
    fails: "a fork of a state that is not there is refused",
    breaker: (inner) => ({
      fork: async (manifest, count, options) =>
        manifest.files === "0".repeat(64) ? [] : ((await inner.fork?.(manifest, count, options)) ?? []),
    }),
  },
  {
    what: "a write makes a new file",
    fails: "writeFile keeps the mode of a file that is there",
    breaker: (inner, place) => ({
      async writeFile(path, data) {
        if (path === "tool.sh") fs.rmSync(at(place, path));
        return inner.writeFile(path, data);
      },
    }),
  },
];

/** All of them on one environment; each acts only on what its own test makes. */
const together =
  (breakers: readonly Breaker[]): Breaker =>
  async (inner, place) => {
    const environment = { ...inner };
    for (const breaker of breakers) Object.assign(environment, await breaker({ ...environment }, place));
    return environment;
  };

describe("broken environments", () => {
  for (const { what, fails, breaker } of broken) {
    test(`${what}: fails "${fails}"`, async () => {
      const own = environmentSuite(directory(breaker)).find((one) => one.name === fails);
      await expect(own?.run()).rejects.toThrow();
    });
  }

  // A whole suite for each takes minutes: AGENTREWIND_LONG asks for that.
  const size = process.env.AGENTREWIND_LONG === undefined ? broken.length : 1;
  for (let from = 0; from < broken.length; from += size) {
    const group = broken.slice(from, from + size);
    const whose = size === 1 ? group.map((one) => one.what).join("; ") : "all of them";
    test(`nothing else fails than the tests of ${whose}`, async () => {
      const failed: string[] = [];
      for (const { name, run } of environmentSuite(directory(together(group.map((one) => one.breaker))))) {
        await run().catch(() => failed.push(name));
      }
      const expected = group.flatMap(({ fails, alsoFails }) => [
        fails,
        ...(alsoFails === undefined ? [] : [alsoFails]),
      ]);
      expect(failed.sort()).toEqual([...new Set(expected)].sort());
    });
  }
});
