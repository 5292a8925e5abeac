// A full disk: of the store at every point of every operation, and of the workspace.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { importBundle, type Rewind } from "agentrewind";
import { expect, test } from "vitest";
import { lacking } from "./capabilities.ts";
import { digestTree } from "./helpers/digest.ts";
import { runSteps } from "./helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });
const digest = (place: Place): string[] => digestTree(place.workspace);
const context = (...messages: string[]) => ({ messages });

const mounts: string[] = [];
const mountSmall = (place: Place, size: string): string => {
  const small = join(place.base, "small");
  fs.mkdirSync(small);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", small]);
  mounts.push(small);
  return small;
};
const fill = (folder: string): string => {
  const file = join(folder, "filler");
  const fd = fs.openSync(file, "w");
  try {
    for (const size of [1 << 16, 4096]) {
      try {
        for (;;) fs.writeSync(fd, Buffer.alloc(size, 1));
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe("ENOSPC");
      }
    }
  } finally {
    fs.closeSync(fd);
  }
  return file;
};
const canMount = !lacking("tmpfs");
const when = test.skipIf(!canMount);
const title = canMount ? "" : " (needs root and mount)";

async function within(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } finally {
    for (const small of mounts.splice(0)) execFileSync("umount", ["-l", small]);
  }
}

/** A workspace with one file, at c0, whose store has a disk of 8 MiB. */
async function onSmallStore() {
  const place = makePlace();
  const store = join(mountSmall(place, "8m"), "store");
  sh(place.workspace, "echo 1 > f");
  const rewind = await useRewind(place, { store });
  const thread = rewind.thread("t");
  await thread.checkpoint({ context: context("m0") });
  return { place, store, rewind, thread };
}

when(`of the store: a checkpoint fails, the next one succeeds${title}`, () =>
  within(async () => {
    const { place, rewind, thread } = await onSmallStore();
    const v0 = digest(place);
    sh(place.workspace, "echo 2 > f; head -c 1000000 /dev/urandom > g");
    const v1 = digest(place);
    const filler = fill(join(place.base, "small"));
    const failed = await thread.checkpoint({ context: context("m0", "m1") }).then(
      (made) => `${made.state}: ${made.reason}`,
      (error: { code: string }) => error.code,
    );
    expect(failed).toMatch(/^DISK_FULL$|^not-restorable: No space left/);
    expect(digest(place)).toEqual(v1);
    fs.rmSync(filler);
    expect(await rewind.verify()).toEqual([]);
    const good = await thread.checkpoint({ context: context("m0", "m1") });
    expect(good.state).toBe("captured");
    await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(v0);
    await thread.rewind({ to: good.id });
    expect(digest(place)).toEqual(v1);
    await endSession(rewind);
  }),
);

when(`of the store, to the last byte: it cannot be opened, and that is said${title}`, () =>
  within(async () => {
    const { place, store, rewind } = await onSmallStore();
    await endSession(rewind);
    const filler = fill(join(place.base, "small"));
    expect(await codeOf(useRewind(place, { store }))).toBe("DISK_FULL");
    fs.rmSync(filler);
    const again = await useRewind(place, { store });
    await again.thread("t").checkpoint();
    await endSession(again);
  }),
);

/** Each comes to a place of its own. */
let imports = 0;

const attempts: readonly {
  name: string;
  prepare?: (rewind: Rewind) => Promise<unknown>;
  run: (rewind: Rewind) => Promise<unknown>;
}[] = [
  {
    name: "checkpoint",
    run: async (rewind) => {
      const made = await rewind.thread("t").checkpoint({ context: context("m0", "y".repeat(50_000)) });
      if (made.state === "not-restorable") throw Object.assign(new Error(made.reason ?? ""), { code: "DISK_FULL" });
    },
  },
  { name: "rewind", run: (rewind) => rewind.thread("t").rewind({ to: "c0", lesson: "z".repeat(900) }) },
  {
    name: "undo",
    prepare: (rewind) => rewind.thread("t").rewind({ to: "c0" }),
    run: (rewind) => rewind.thread("t").undo(),
  },
  {
    name: "export to it",
    run: async ({ workspace, export: exportTo }) => {
      const to = join(workspace, "../small/t.bundle");
      await exportTo({ to });
      fs.rmSync(to);
    },
  },
  {
    name: "import",
    async prepare({ workspace }) {
      const [other, file] = [join(workspace, "../other"), join(workspace, "../t.bundle")];
      fs.rmSync(file, { force: true });
      imports++;
      fs.mkdirSync(other, { recursive: true });
      // All of them stay in the store.
      fs.writeFileSync(join(other, "random"), randomBytes(30_000));
      const rewind = await useRewind({ base: "", workspace: other, store: join(workspace, "../other-store") });
      await rewind.thread("t").checkpoint({ context: context("m0", `${Math.random()}`) });
      await rewind.export({ to: file, checkpoint: rewind.thread("t").head as string });
      await endSession(rewind);
    },
    async run({ workspace }) {
      const into = join(workspace, `../imported-${imports}`);
      await importBundle(join(workspace, "../t.bundle"), { store: join(workspace, "../small/store"), into });
      const made = await useRewind({ base: "", workspace: into, store: join(workspace, "../small/store") });
      await endSession(made);
    },
  },
  {
    name: "prune with its gc",
    async prepare(rewind) {
      const thread = rewind.thread("t");
      thread.label("kept", "c0");
      const junk = join(rewind.workspace, "junk");
      fs.writeFileSync(junk, randomBytes(500_000));
      await thread.checkpoint({ context: context("m0", "junk") });
      fs.rmSync(junk);
      await thread.checkpoint({ context: context("m0", "m1") });
    },
    async run(rewind) {
      const { gc } = await rewind.prune({ keepLast: 1 });
      if (gc?.postponed.join().includes("no room")) throw Object.assign(new Error(), { code: "DISK_FULL" });
    },
  },
];
for (const { name, prepare, run } of attempts) {
  // SQLite's own writes fail here too, each at some fill.
  when(`F-6, F-16, F-22, F-36: of the store, full at every point of a ${name}${title}`, { timeout: 1_200_000 }, () =>
    within(async () => {
      const place = makePlace();
      const small = mountSmall(place, "24m");
      const store = join(small, "store");
      sh(place.workspace, "echo 1 > f; seq 9000 > g; mkdir d; echo 1 > d/x");
      const rewind = await useRewind(place, { store });
      const thread = rewind.thread("t");
      await thread.checkpoint({ context: context("m0") });
      const v0 = digest(place);
      let failures = 0;
      for (let free = 0, whole = 0; whole < 2; free += process.env.AGENTREWIND_LONG === "1" ? 4 : 32) {
        sh(
          place.workspace,
          `echo ${free} > f; seq ${free} 20000 > g; rm -rf d; mkdir e 2>/dev/null; echo ${free} > e/y`,
        );
        const edited = digest(place);
        await prepare?.(rewind);
        const before = digest(place);
        // What is kept back for gc would spare it from failing.
        fs.rmSync(join(store, "reserve"), { force: true });
        const filler = fill(small);
        fs.truncateSync(filler, fs.statSync(filler).size - free * 1024);
        const code = await run(rewind).then(
          () => undefined,
          (error: { code: string }) => error.code,
        );
        fs.rmSync(filler);
        const at = `with ${free} KiB free`;
        const wanted = { rewind: v0, undo: edited }[name] ?? before;
        expect([undefined, "DISK_FULL", "RESTORE_FAILED"], at).toContain(code);
        expect(await rewind.verify(), at).toEqual([]);
        if (code === undefined) whole++;
        else {
          failures++;
          // What could not even be put back was finished by the first that came after it.
          const finished = code === "RESTORE_FAILED" && digest(place).join() === wanted.join();
          if (!finished) {
            expect(digest(place), at).toEqual(before);
            await run(rewind);
          }
        }
        expect(digest(place), at).toEqual(wanted);
      }
      expect(failures).toBeGreaterThan(0);
      await thread.rewind({ to: "c0" });
      expect(digest(place)).toEqual(v0);
      await endSession(rewind);
    }),
  );
}

when(`of the store: a rewind whose present state cannot be kept is refused${title}`, () =>
  within(async () => {
    const { place, rewind, thread } = await onSmallStore();
    const v0 = digest(place);
    sh(place.workspace, "echo 2 > f; head -c 3000000 /dev/urandom > g");
    const v1 = digest(place);
    const filler = fill(join(place.base, "small"));
    expect(await codeOf(thread.rewind({ to: "c0" }))).toBe("DISK_FULL");
    expect(digest(place)).toEqual(v1);
    expect(thread.head).toBe("c0");
    fs.rmSync(filler);
    await thread.rewind({ to: "c0" });
    expect(digest(place)).toEqual(v0);
    await thread.undo();
    expect(digest(place)).toEqual(v1);
    await endSession(rewind);
  }),
);

when(`of the workspace: a rewind fails before it touches anything${title}`, () =>
  within(async () => {
    const place = makePlace();
    const small = mountSmall(place, "8m");
    const workspace = join(small, "workspace");
    fs.mkdirSync(workspace);
    sh(workspace, "echo 1 > f; head -c 2000000 /dev/urandom > g; mkdir d; echo 1 > d/x");
    const rewind = await useRewind(place, { workspace });
    const thread = rewind.thread("t");
    const v0 = digestTree(workspace);
    await thread.checkpoint({ context: context("m0") });
    sh(workspace, "echo 2 > f; rm -r g d; mkdir e");
    const v1 = digestTree(workspace);
    const filler = fill(small);
    expect(await codeOf(thread.rewind({ to: "c0" }))).toBe("DISK_FULL");
    expect(digestTree(workspace)).toEqual(v1);
    expect(thread.head).toBe("c0");
    expect(await rewind.verify()).toEqual([]);
    fs.rmSync(filler);
    await thread.rewind({ to: "c0" });
    expect(digestTree(workspace)).toEqual(v0);
    await endSession(rewind);
  }),
);

when(`F-24: a killed rewind that a full disk keeps from being finished is finished later${title}`, () =>
  within(async () => {
    const place = makePlace();
    const small = mountSmall(place, "8m");
    const workspace = join(small, "workspace");
    fs.mkdirSync(workspace);
    sh(workspace, "echo 1 > f; head -c 2000000 /dev/urandom > g");
    const rewind = await useRewind(place, { workspace });
    const v0 = digestTree(workspace);
    await rewind.thread("t").checkpoint({ context: context("m0") });
    sh(workspace, "rm g; echo 2 > f");
    const v1 = digestTree(workspace);
    await rewind.thread("t").checkpoint({ context: context("m0", "m1") });
    await endSession(rewind);
    const ran = runSteps({ workspace, store: place.store, env: { AGENTREWIND_FAULT: "rewind.intent" } }, [
      { op: "open" },
      { op: "rewind", to: "c0" },
    ]);
    expect(ran.signal).toBe("SIGKILL");
    const filler = fill(small);
    const again = await useRewind(place, { workspace });
    expect(again.thread("t").head, "undone").toBe("c1");
    expect(digestTree(workspace)).toEqual(v1);
    fs.rmSync(filler);
    await again.thread("t").rewind({ to: "c0" });
    expect(digestTree(workspace)).toEqual(v0);
    await endSession(again);
  }),
);
