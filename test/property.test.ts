// Random histories of file operations, checkpoints, rewinds and undos against an oracle of tree digests.
import * as fs from "node:fs";
import { join } from "node:path";
import type { Thread } from "agentrewind";
import { describe, expect, test } from "vitest";
import { digestTree } from "./helpers/digest.ts";
import { endSession, makePlace, useRewind } from "./helpers/workspace.ts";

const histories = Number(process.env.AGENTREWIND_HISTORIES ?? 60);
/** Set it to a seed that failed to run that history alone. */
const only = process.env.AGENTREWIND_SEED;
const steps = 45;

type Random = () => number;

/** Mulberry32: small, seeded, good enough to choose operations. */
function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const names = ["a", "b", "c", "d1", "*", "-x", " y", "z\nz", 'q"', "é", "漢"].map((name) => Buffer.from(name));
names.push(Buffer.from([0xff, 0x41]), Buffer.alloc(255, 0x6e));
const slash = Buffer.from("/");
const join2 = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, slash, name]);

interface Tree {
  readonly folders: Buffer[];
  readonly files: Buffer[];
  /** Everything but the root. */
  readonly all: Buffer[];
}

function look(root: Buffer): Tree {
  const tree: Tree = { folders: [root], files: [], all: [] };
  const visit = (folder: Buffer): void => {
    for (const name of fs.readdirSync(folder, { encoding: "buffer" }).sort(Buffer.compare)) {
      const path = join2(folder, name);
      const stat = fs.lstatSync(path);
      tree.all.push(path);
      if (stat.isFile()) tree.files.push(path);
      if (stat.isDirectory()) {
        tree.folders.push(path);
        visit(path);
      }
    }
  };
  visit(root);
  return tree;
}

/** One random change. What the system refuses (a folder moved into itself, a name that is taken) is no change. */
function change(root: Buffer, random: Random, portable: boolean): string {
  const tree = look(root);
  const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
  const number = (limit: number): number => Math.floor(random() * limit);
  const place = (): Buffer => join2(pick(tree.folders) as Buffer, pick(names) as Buffer);
  const content = (): Buffer =>
    Buffer.alloc(random() < 0.04 ? 200_000 + number(400_000) : number(300), `${number(8)}-${number(3)}`);
  /** Never a FIFO, which would wait for its other end. */
  const file = (): Buffer => {
    const found = pick(tree.files);
    if (found === undefined) throw Object.assign(new Error("no file yet"), { code: "ENOFILE" });
    return found;
  };
  const clear = (path: Buffer): void => fs.rmSync(path, { recursive: true, force: true });
  const operations: Record<string, () => void> = {
    create: () => fs.writeFileSync(place(), content(), { flag: "wx" }),
    write: () => fs.writeFileSync(file(), content()),
    append: () => fs.appendFileSync(file(), content()),
    truncate: () => fs.truncateSync(file(), number(100)),
    grow: () => fs.truncateSync(file(), 300_000 + number(600_000)),
    rename: () => fs.renameSync(pick(tree.all) ?? place(), place()),
    mkdir: () => fs.mkdirSync(place()),
    mkdirs: () => fs.mkdirSync(join2(place(), pick(names) as Buffer), { recursive: true }),
    remove: () => clear(pick(tree.all) ?? place()),
    chmod: () => {
      const path = pick(tree.all);
      if (path !== undefined && !fs.lstatSync(path).isSymbolicLink())
        fs.chmodSync(path, pick([0o755, 0o644, 0o600, 0o444, 0o4711, 0o1777, 0o000, 0o2750]) as number);
    },
    chmodRoot: () => fs.chmodSync(root, pick([0o755, 0o700, 0o500]) as number),
    utimes: () => {
      const time = 1_500_000_000 + number(1_000_000) + random();
      fs.lutimesSync(pick(tree.all) ?? root, time, time);
    },
    sameTime: () => {
      const path = pick(tree.files);
      if (path === undefined) return;
      const { mtimeMs, size } = fs.statSync(path);
      fs.writeFileSync(path, Buffer.alloc(size, `${number(9)}`));
      fs.utimesSync(path, mtimeMs / 1000, mtimeMs / 1000);
    },
    symlink: () => fs.symlinkSync(pick([pick(names), Buffer.from("../.."), Buffer.from("/"), root]) as Buffer, place()),
    link: () => fs.linkSync(file(), place()),
    linkAny: () => fs.linkSync(pick(tree.all) ?? place(), place()),
    copy: () => fs.copyFileSync(file(), place(), fs.constants.COPYFILE_EXCL),
    chown: () => fs.lchownSync(pick(tree.all) ?? root, number(3), number(3)),
    toFile: () => {
      const path = pick(tree.all) ?? place();
      clear(path);
      fs.writeFileSync(path, content());
    },
    toFolder: () => {
      const path = pick(tree.all) ?? place();
      clear(path);
      fs.mkdirSync(path);
      fs.writeFileSync(join2(path, pick(names) as Buffer), content());
    },
    toLink: () => {
      const path = pick(tree.all) ?? place();
      clear(path);
      fs.symlinkSync(pick(names) as Buffer, path);
    },
    swap: () => {
      const [one, other] = [pick(tree.all), pick(tree.all)];
      if (one === undefined || other === undefined || one.equals(other)) return;
      const aside = join2(root, Buffer.from("aside"));
      fs.renameSync(one, aside);
      try {
        fs.renameSync(other, one);
      } catch {
        fs.renameSync(aside, one);
        return;
      }
      fs.renameSync(aside, other);
    },
    ...(portable ? {} : { fifo: () => makeFifo(place()) }),
  };
  const name = pick(Object.keys(operations)) as string;
  try {
    (operations[name] as () => void)();
    return name;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || !code.startsWith("E")) throw error;
    return `${name}: ${code}`;
  }
}

/** Node has no call for it, and a process for each would be slow: the names of one FIFO that the test made once. */
let fifo: string | undefined;
function makeFifo(path: Buffer): void {
  if (fifo !== undefined) fs.linkSync(fifo, path);
}

async function runHistory(seed: number, portable: boolean): Promise<void> {
  const random = seeded(seed);
  const place = makePlace();
  const root = Buffer.from(place.workspace);
  const { execFileSync } = await import("node:child_process");
  fifo = join(place.base, "fifo");
  execFileSync("mkfifo", [fifo]);
  const digest = (): string[] => digestTree(place.workspace, { times: portable ? "us" : "ns" });
  let rewind = await useRewind(place);
  let thread: Thread = rewind.thread("t");
  const states = new Map<string, { digest: string[]; messages: unknown[] }>();
  const undos: { digest: string[]; messages: unknown[] }[] = [];
  const log: string[] = [];
  let messages: unknown[] = [];

  try {
    for (let step = 0; step < steps; step++) {
      const dice = random();
      if (dice < 0.66 || states.size === 0) {
        if (states.size > 0 || dice < 0.5) log.push(change(root, random, portable));
        if (states.size > 0) continue;
      }
      if (dice < 0.82 || states.size === 0) {
        messages = [...messages, `message ${step}`];
        const seen = digest();
        const { id } = await thread.checkpoint({ context: { messages } });
        log.push(id);
        expect(states.has(id), "ids are never given again").toBe(false);
        states.set(id, { digest: seen, messages });
        expect(digest(), "a capture changes nothing").toEqual(seen);
      } else if (dice < 0.94) {
        const ids = [...states.keys()];
        const to = ids[Math.floor(random() * ids.length)] as string;
        log.push(`rewind ${to}`);
        const left = { digest: digest(), messages };
        const result = await thread.rewind({ to });
        expect(result.notRestored).toEqual([]);
        expect(digest()).toEqual(states.get(to)?.digest);
        expect(result.context.messages).toEqual(states.get(to)?.messages);
        expect(thread.head).toBe(to);
        messages = [...result.context.messages];
        undos.push(left);
        if (result.left !== null) states.set(result.left.id, left);
      } else if (dice < 0.97) {
        const wanted = undos.pop();
        log.push("undo");
        if (wanted === undefined) continue;
        const { context } = await thread.undo();
        expect(digest()).toEqual(wanted.digest);
        expect(context.messages).toEqual(wanted.messages);
        messages = [...context.messages];
      } else {
        log.push("reopen");
        await endSession(rewind);
        rewind = await useRewind(place);
        thread = rewind.thread("t");
      }
    }
    for (const [id, state] of states) {
      await thread.rewind({ to: id });
      expect(digest(), `at the end, ${id}`).toEqual(state.digest);
    }
    await endSession(rewind);
  } catch (error) {
    const failure = error as Error;
    failure.message = `AGENTREWIND_SEED=${seed}${portable ? " (portable)" : ""}: ${failure.message}\n${log.join(", ")}`;
    throw failure;
  }
}

describe("random histories", () => {
  const seeds = only === undefined ? Array.from({ length: histories }, (_, i) => i + 1) : [Number(only)];
  const chunk = 10;
  for (let from = 0; from < seeds.length; from += chunk) {
    const part = seeds.slice(from, from + chunk);
    test(`seeds ${part[0]} to ${part.at(-1)}`, { timeout: 300_000 }, async () => {
      for (const seed of part) {
        const portable = seed % 4 === 0;
        if (portable) process.env.AGENTREWIND_NATIVE = "off";
        try {
          await runHistory(seed, portable);
        } finally {
          delete process.env.AGENTREWIND_NATIVE;
        }
      }
    });
  }
});
