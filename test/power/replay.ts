// Rebuilds the disks that a power cut can leave of a recorded session, and looks at each through the library as a user would.
import { execFileSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { type Cut, choose, cutsOf, makeRandom, parseLog, type Segment, type Write } from "./log.ts";
import { digestOf, type Mark } from "./session.ts";

export interface ReplayOptions {
  /** The disk before the session, and the log of what followed. */
  readonly image: string;
  readonly log: string;
  /** The trees that the marks name. */
  readonly digests: string;
  /** An empty folder for a tmpfs. */
  readonly folder: string;
  /** Where the recorded disk was mounted. */
  readonly disk: string;
  readonly workspace: string;
  readonly store: string;
  /** What to put at `workspace` before each look; null: the disk holds it. */
  readonly workspaceCopy: string | null;
  readonly seed: number;
  readonly limit: number;
  readonly subsets: number;
}

export interface ReplayResult {
  readonly segments: number;
  readonly writes: number;
  readonly cuts: number;
  readonly tried: number;
  readonly failures: readonly { readonly cut: string; readonly message: string }[];
}

const describe = (error: unknown): string =>
  `${(error as { stderr?: Buffer }).stderr ?? ""}${(error as Error).stack?.split("\n").slice(0, 6).join("\n")}`;

/** What this process holds open there. */
const openBelow = (folder: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return "";
      }
    })
    .filter((path) => path.startsWith(`${folder}/`));

function apply(file: string, writes: readonly Write[]): void {
  const fd = openSync(file, "r+");
  try {
    for (const { offset, bytes } of writes) writeSync(fd, bytes, 0, bytes.length, offset);
  } finally {
    closeSync(fd);
  }
}

async function look(options: ReplayOptions, marks: readonly Mark[], all: readonly Mark[]): Promise<void> {
  const digests = JSON.parse(readFileSync(options.digests, "utf8")) as Record<string, string[]>;
  const require = (holds: boolean, message: string): void => {
    if (!holds) throw new Error(message);
  };
  const { workspace, store } = options;
  mkdirSync(workspace, { recursive: true });
  const rewind = await openRewind({ workspace, store });
  try {
    const findings = await rewind.verify();
    require(findings.length === 0, `verify: ${JSON.stringify(findings)}`);
    const thread = rewind.thread("t");
    const listed = new Map(thread.checkpoints({ all: true }).map((one) => [one.id, one]));
    let promised = new Set<string>();
    for (const { checkpoints, keeps } of marks) {
      for (const { id, durable } of checkpoints) if (durable) promised.add(id);
      if (keeps !== undefined) promised = new Set([...promised].filter((id) => keeps.includes(id)));
    }
    const known = new Map(all.flatMap((mark) => mark.checkpoints.map((one) => [one.id, one])));

    for (const id of promised) {
      const state = listed.get(id)?.state ?? "missing";
      require(state === "durable" ||
        state === "captured", `${id} was promised and is ${state}: ${listed.get(id)?.reason}`);
    }
    const lessons = new Set(thread.lessons().map((one) => one.text));
    for (const { lesson } of marks)
      require(lesson === undefined || lessons.has(lesson), `${lesson} was promised and is missing`);
    const effects = new Map(thread.effects().map((one) => [one.description, one.state]));
    for (const { effect } of marks) {
      const state = effect && effects.get(effect.description);
      require(effect === undefined ||
        state === "completed" ||
        (state === "unknown" && !effect.ended), `${effect?.description} is ${state}`);
    }
    const from = marks.findLastIndex((mark) => mark.durable);
    const heads = all.slice(Math.max(from, 0), marks.length + 1).map((mark) => mark.head);
    require(from < 0 || heads.includes(thread.head ?? ""), `the head is ${thread.head}, not one of ${heads.join()}`);

    for (const [id, { state, label }] of listed) {
      const expected = known.get(id);
      // What recovery found and kept took a number that the session gave to something else.
      const found = label?.startsWith("found after") === true && !promised.has(id);
      if (state === "not-restorable" || expected === undefined || found) continue;
      const back = await thread.rewind({ to: id });
      const { name, lines } = digestOf(workspace);
      const wanted = digests[expected.digest] ?? [];
      const different = [
        ...wanted.filter((line) => !lines.includes(line)),
        "but",
        ...lines.filter((line) => !wanted.includes(line)),
      ];
      require(name === expected.digest, `${id} was restored to something else: ${different.join(" | ")}`);
      const same = JSON.stringify(back.context.messages) === JSON.stringify(expected.messages);
      require(same, `${id}: its conversation is another`);
    }
    writeFileSync(join(workspace, "after"), "the cut");
    const turn = await thread.beginTurn({ messages: ["after"] });
    const next = await turn.gate();
    require(!listed.has(next.id), `${next.id} was given twice`);
    require((await turn.durable).state === "durable", `the next checkpoint is ${next.state}: ${next.reason}`);
    if (all.some(({ keeps }) => keeps !== undefined)) {
      const { postponed } = await rewind.gc();
      require(postponed.length === 0, `gc, afterwards: ${postponed.join()}`);
      const again = await rewind.gc();
      require(again.objects + again.bytes + again.leftOver === 0, `gc left something: ${JSON.stringify(again)}`);
    }
    const after = await rewind.verify();
    require(after.length === 0, `verify, afterwards: ${JSON.stringify(after)}`);
  } finally {
    await rewind.close();
  }
}

async function main(options: ReplayOptions): Promise<ReplayResult> {
  const { segments, marks } = parseLog(readFileSync(options.log));
  const all = marks.map((text) => JSON.parse(text) as Mark);
  const end = segments.findIndex((segment) => segment.marks === all.length);
  const recorded = segments.slice(0, end + 1);
  const random = makeRandom(options.seed);
  const cuts = cutsOf(recorded, random, options.subsets);
  const chosen = choose(cuts, recorded, random, options.limit);
  execFileSync("mount", ["-t", "tmpfs", "tmpfs", options.folder]);
  const flushed = join(options.folder, "flushed");
  copyFileSync(options.image, flushed);

  const failures: { cut: string; message: string }[] = [];
  let at = 0;
  let count = 0;
  const visit = async (cut: Cut): Promise<void> => {
    for (; at < cut.segment; at++) apply(flushed, (recorded[at] as Segment).writes);
    const disk = join(options.folder, `disk-${count++}`);
    copyFileSync(flushed, disk);
    apply(disk, cut.kept);
    const fail = (error: unknown): unknown => failures.push({ cut: cut.name, message: describe(error) });
    try {
      execFileSync("mount", ["-o", "loop,noatime", disk, options.disk], { stdio: "pipe" });
      if (options.workspaceCopy !== null) {
        rmSync(options.workspace, { recursive: true, force: true });
        execFileSync("cp", ["-a", options.workspaceCopy, options.workspace]);
      }
      await look(options, all.slice(0, recorded[cut.segment]?.marks), all);
    } catch (error) {
      fail(error);
    }
    try {
      execFileSync("umount", [options.disk], { stdio: "pipe" });
    } catch (error) {
      fail(new Error(`left open: ${openBelow(options.disk).join()}`, { cause: error }));
      execFileSync("umount", ["-l", options.disk]);
    }
    rmSync(disk);
  };
  for (const cut of chosen) await visit(cut);
  const writes = recorded.reduce((sum, segment) => sum + segment.writes.length, 0);
  return { segments: recorded.length, writes, cuts: cuts.length, tried: chosen.length, failures };
}

const result = await main(JSON.parse(process.argv[2] as string) as ReplayOptions);
process.stdout.write(JSON.stringify(result));
