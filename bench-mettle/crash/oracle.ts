// What a trace is worth: its verifier fails at the beginning and without any of its acting turns, and which halves of the environment it needs at each turn,
// found by replaying the rest of it with that half dropped.
import { type FileChanges, type Manifest, openRewind, type Rewind } from "agentrewind";
import { makePlace } from "./place.ts";
import { openOptions, policies } from "./policies.ts";
import { toolsOver, verified } from "./tools.mjs";
import type { Trace } from "./traces/trace.ts";

export const drops = ["files", "processes", "both"] as const;
export type Drop = (typeof drops)[number];

export interface Judged {
  readonly trace: string;
  readonly family: string;
  readonly kind: Trace["kind"];
  /** What is wrong with the trace; [] when it may be used. */
  readonly faults: readonly string[];
  /** By what was dropped: before which turns that does no harm. */
  readonly harmless: Readonly<Record<Drop, readonly number[]>>;
  /** The turns before which a half was dropped. */
  readonly tried: readonly number[];
}

export type Needs = "none" | "files" | "processes" | "both";

/** Which halves the verifier needs at some turn. */
export function needsOf({ harmless, tried }: Pick<Judged, "harmless" | "tried">): Needs {
  const needs = (half: "files" | "processes"): boolean => harmless[half].length < tried.length;
  if (needs("files")) return needs("processes") ? "both" : "files";
  return needs("processes") ? "processes" : "none";
}

export interface JudgeOptions {
  /** Of the acting turns, which are left out. Default: all. */
  readonly leaveOut?: (turn: number) => boolean;
  /** Before which turns halves are dropped. Default: all but the first. */
  readonly ablate?: (turn: number) => boolean;
}

const ours = policies.find(({ name }) => name === "ours") as (typeof policies)[number];

export async function judge(trace: Trace, options: JudgeOptions = {}): Promise<Judged> {
  const { leaveOut = () => true, ablate = () => true } = options;
  const place = makePlace(trace);
  place.makeFresh();
  try {
    await using rewind = await openRewind({
      workspace: place.workspace,
      store: place.store(),
      ...openOptions(ours, trace),
    });
    const replay = makeReplay(rewind, trace);
    const faults: string[] = [];
    if ((await replay.verify()).pass) faults.push("passes at the beginning");
    await replay.record();
    const { pass, why } = await replay.verify();
    if (!pass) faults.push(`fails at the end: ${why}`);
    for (const [turn, { looks }] of trace.turns.entries()) {
      if (looks || !leaveOut(turn)) continue;
      await replay.restore(turn);
      await replay.from(turn + 1);
      if ((await replay.verify()).pass) faults.push(`passes without turn ${turn} (${trace.turns[turn]?.say})`);
    }
    const tried = trace.turns.map((_, turn) => turn).filter((turn) => turn > 0 && ablate(turn));
    const harmless: Record<Drop, number[]> = { files: [], processes: [], both: [] };
    for (const turn of tried) {
      for (const drop of drops) {
        await replay.restore(turn, drop);
        await replay.from(turn);
        if ((await replay.verify()).pass) harmless[drop].push(turn);
      }
    }
    return { trace: trace.id, family: trace.family, kind: trace.kind, faults, harmless, tried };
  } finally {
    place.remove();
  }
}

function makeReplay({ environment }: Rewind, trace: Trace) {
  const tools = toolsOver(environment);
  /** Before each turn. */
  const states: Manifest[] = [];
  const run = async (turn: number): Promise<void> => {
    for (const { tool, args } of trace.turns[turn]?.calls ?? []) await tools[tool](args);
  };
  const stateAt = (turn: number): Manifest => states[turn] as Manifest;

  return {
    verify: () => verified(environment, trace.verify),
    /** All of it, with the state before each turn. */
    async record(): Promise<void> {
      for (const turn of trace.turns.keys()) {
        states.push((await environment.capture().captured).manifest);
        await run(turn);
      }
    },
    async from(turn: number): Promise<void> {
      for (let at = turn; at < trace.turns.length; at++) await run(at);
    },
    /** The state before the turn, but for what is dropped of it: those files are as at the beginning, those processes are gone. */
    async restore(turn: number, drop?: Drop): Promise<void> {
      const state = stateAt(turn);
      const first = stateAt(0);
      if (drop === "both") await environment.restore({ files: first.files, processes: null });
      else if (drop === "processes") await environment.restore({ files: state.files, processes: null });
      else {
        await environment.restore(state);
        if (drop === undefined) return;
        const paths = changedPaths(await environment.diff(first, state));
        if (paths.size > 0) await environment.restore(first, { paths });
      }
    },
  };
}

/** A folder whose times alone differ stands for nothing below it, and may hold the workspace itself. */
function changedPaths({ added, removed, changed, mode, type, renamed }: FileChanges): Set<string> {
  const moved = renamed.flatMap(({ from, to }) => [from, to]);
  const paths = [...added, ...removed, ...changed, ...type, ...moved];
  const alone = mode.filter(
    (path) => path !== "" && !path.startsWith("/tmp") && !paths.some((one) => one.startsWith(`${path}/`)),
  );
  return new Set([...paths, ...alone]);
}
