// Sessions whose disk is recorded: marks in the log say what was promised, and when.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, writeFileSync } from "node:fs";
import { type Checkpoint, openRewind, type Pruned, type Rewind } from "agentrewind";
import { digestTree } from "../helpers/digest.ts";

export interface SessionOptions {
  /** What it does: turns, rewinds and undos; or turns between which checkpoints are given up. */
  readonly what: "turns" | "prune";
  readonly workspace: string;
  readonly store: string;
  /** Writes to it become marks of the log. */
  readonly mark: string;
  /** What the digests of the marks mean, for people. */
  readonly digests: string;
}

/** What holds when it stands in the log. */
export interface Mark {
  readonly op: string;
  /** Id of the head. */
  readonly head: string;
  /** The head is on disk: what is before it in the log cannot be the state any more. */
  readonly durable: boolean;
  /** Checkpoints that this operation made or promised. */
  readonly checkpoints: readonly {
    readonly id: string;
    readonly digest: string;
    readonly messages: readonly string[];
    readonly durable: boolean;
  }[];
  readonly lesson?: string;
  /** Of a call with an effect: it is about to be made, or its result is recorded. */
  readonly effect?: { readonly description: string; readonly ended: boolean };
  /** From here on only these of the checkpoints before it are promised. */
  readonly keeps?: readonly string[];
}

export const digestOf = (workspace: string): { name: string; lines: string[] } => {
  const lines = digestTree(workspace);
  return { name: createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 16), lines };
};

const states = [
  `mkdir -p d/sub gone; echo 1 > a; echo 1 > b; echo same > same; echo 1 > d/f; echo 1 > d/sub/g; ln -s a l; ln a d/hard
   chmod 600 same; echo 1 > gone/x; mkfifo p; seq 1 60000 > big`,
  "echo 2 > a; rm b; mkdir b; echo 2 > b/in; chmod 644 same; rm -r gone; ln -sf b l; echo 2 > new; seq 5 70000 >> big",
  "echo 3 > d/f; rm -r b; rm p; mkdir -p deep/er; echo 3 > deep/er/x; echo 3 >> big; ln new new2; touch d/sub; chmod 711 d/sub",
  "rm -r d; mkdir d; seq 9 30000 > d/big; echo 4 > a; chmod 600 a",
  "mv d moved; echo five > five; printf x | dd of=big bs=1 seek=1000 conv=notrunc 2>&1",
] as const;

/** Dead bytes for its packs, and names that take pages of the catalog. */
const junk =
  "head -c 900000 /dev/urandom > junk; mkdir many; seq 200 | sed s,^,many/a-rather-long-name-, | xargs touch";
const noJunk = "rm -rf junk many";
/** In the pack that it gets more is alive. */
const halfJunk = "head -c 1500000 /dev/urandom > alive; head -c 1400000 /dev/urandom > junk";

async function main({ what, workspace, store, mark, digests }: SessionOptions): Promise<void> {
  const known: Record<string, string[]> = {};
  const messages: string[] = [];
  const shell = (command: string): unknown => execFileSync("sh", ["-c", command], { cwd: workspace, stdio: "pipe" });
  const note = (what: Mark): void => appendFileSync(mark, JSON.stringify(what));
  const now = (): string => {
    const { name, lines } = digestOf(workspace);
    known[name] = lines;
    return name;
  };
  const effects = { act: { class: "irreversible", describe: ({ name }: { name: string }) => name } } as const;
  const open = (): Promise<Rewind> => openRewind({ workspace, store, effects });
  let rewind = await open();
  let newest: Mark["checkpoints"] = [];

  const checkpoint = async (state: string, durable: boolean): Promise<Checkpoint> => {
    shell(state);
    messages.push(`${state.slice(0, 20)} ${"x".repeat(messages.length * 500)}`);
    const digest = now();
    const turn = await rewind.thread("t").beginTurn({ messages });
    const made = await turn.gate();
    const one = { id: made.id, digest, messages: [...messages] };
    newest = [{ ...one, durable: true }];
    note({ op: "captured", head: made.id, durable: false, checkpoints: [{ ...one, durable: false }] });
    if (durable) {
      await turn.durable;
      note({ op: "durable", head: made.id, durable, checkpoints: [{ ...one, durable }] });
    }
    return made;
  };
  const moved = (
    op: string,
    back: Awaited<ReturnType<ReturnType<Rewind["thread"]>["undo"]>>,
    left: string,
    leftMessages: string[],
    lesson?: string,
  ): void => {
    messages.splice(0, messages.length, ...(back.context.messages as string[]));
    note({
      op,
      head: back.checkpoint.id,
      durable: true,
      checkpoints:
        back.left === null ? [] : [{ id: back.left.id, digest: left, messages: leftMessages, durable: true }],
      ...(lesson === undefined ? {} : { lesson }),
    });
  };
  /** Right behind a checkpoint, which must be on disk before the call is made, as the record of the call. */
  const act = async (name: string): Promise<void> => {
    const head = newest[0]?.id as string;
    const about = (ended: boolean) => ({ op: "effect", head, durable: true, effect: { description: name, ended } });
    await rewind
      .thread("t")
      .runTool({ tool: "act", args: { name } }, () => note({ ...about(false), checkpoints: newest }));
    note({ ...about(true), checkpoints: newest });
  };
  const goTo = async (to: string, lesson: string): Promise<void> => {
    const left = now();
    const before = [...messages];
    moved("rewind", await rewind.thread("t").rewind({ to, lesson }), left, before, lesson);
  };
  const undo = async (): Promise<void> => {
    const left = now();
    const before = [...messages];
    moved("undo", await rewind.thread("t").undo(), left, before);
  };

  const turns = async (): Promise<void> => {
    await checkpoint(states[0], true);
    await checkpoint(states[1], true);
    await checkpoint(states[2], false);
    await act("the first effect");
    await goTo("c0", "the first lesson");
    shell(states[3]);
    await undo();
    await checkpoint(states[3], true);
    shell("echo unsaved > unsaved; head -c 70000 big > half");
    await goTo("c1", "the second lesson");
    await checkpoint("echo effect > effect", false);
    await act("the second effect");
    await rewind.close();
    rewind = await open();
    await checkpoint("echo again > again", true);
    await goTo("c0", "the third lesson");
    await checkpoint(states[4], false);
  };
  /** Gives up all but c0 and the head, which has what `state` makes, and not what `dead` made. */
  const pruneBehind = async (dead: string, state: string): Promise<NonNullable<Pruned["gc"]>> => {
    await checkpoint(dead, true);
    const { id } = await checkpoint(`${noJunk}; ${state}`, true);
    const keeps = ["c0", id];
    note({ op: "pruning", head: id, durable: true, checkpoints: [], keeps });
    const { kept, gc } = await rewind.prune({ keepLast: 1 });
    if (kept !== keeps.length || gc === null) throw new Error(`pruned otherwise: ${JSON.stringify({ kept, gc })}`);
    note({ op: "pruned", head: id, durable: true, checkpoints: [], keeps });
    return gc;
  };
  const prunes = async (): Promise<void> => {
    await checkpoint(states[0], true);
    rewind.thread("t").label("kept", "c0");
    for (const state of states.slice(1, 3)) {
      const gc = await pruneBehind(junk, state);
      if (gc.packs.rewritten === 0 || gc.catalog === 0) throw new Error(`nothing rewritten: ${JSON.stringify(gc)}`);
    }
    const gc = await pruneBehind(halfJunk, "echo half > half");
    if (gc.packs.rewritten > 0 || gc.bytes < 1e6) throw new Error(`nothing freed in place: ${JSON.stringify(gc)}`);
    await checkpoint(states[3], false);
  };

  await (what === "turns" ? turns() : prunes());
  await rewind.close();
  writeFileSync(digests, JSON.stringify(known));
  note({ op: "end", head: "", durable: false, checkpoints: [] });
}

if (process.argv[2] !== undefined && import.meta.filename === process.argv[1])
  await main(JSON.parse(process.argv[2]) as SessionOptions);
