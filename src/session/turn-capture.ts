// When the environment half of a turn is captured: at its beginning, when the reply is there and before its tools run, or not at all.
import type { ActionCall } from "../coordinator/policy/actions.ts";
import { askChanged, type Changed } from "../coordinator/policy/changed.ts";
import { type CaptureTurn, classesOf } from "../coordinator/policy/policy.ts";
import type { Capture, Captured, FileChanges, Manifest, Problem } from "../environment/environment.ts";
import { reportSkip } from "../events.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { manifestOf } from "./move.ts";
import { checkpointTool } from "./tools.ts";
import type { Activity } from "./types.ts";
import { NotCaptured, newestRestorable } from "./uncaptured.ts";

interface Begun {
  readonly thread: ThreadRow;
  /** The checkpoint's number. */
  readonly seq: number;
  readonly activity: Activity;
}

/** The environment half of a turn that begins; undefined: it is captured now. Runs alone. */
export async function halfWithout(deps: SessionDeps, { thread, seq, activity }: Begun): Promise<Capture | undefined> {
  const { catalog, policy, changedSince } = deps;
  if (policy.always && changedSince === undefined) return undefined;
  const { head, base } = catalog.read(() => {
    const row = catalog.thread(thread.name) as ThreadRow;
    const head = row.head === null ? undefined : catalog.checkpoint(row.head);
    return { head, base: newestRestorable(deps, head) };
  });
  const answer = await askChanged(changedSince, base && manifestOf(base));
  const onDisk = base && shareable(deps, base.id);
  const told = { thread: thread.name, checkpoint: `c${seq}` };
  if (answer === "none" && base !== undefined && onDisk !== undefined) {
    reportSkip({ ...told, reason: "unchanged" });
    return shared(base, onDisk);
  }
  if (policy.always) return undefined;
  const changed: Changed = answer === "none" ? "unknown" : answer;
  const turn = (head?.turn ?? 0) + 1;
  const calls = activity.actions.map(({ tool, input }) => ({ tool, input }));
  const untold = calls.length === 0 && head !== undefined && head.tools !== "none";
  const wanted = policy.wants({
    thread: thread.name,
    turn,
    moment: "begin",
    calls,
    classes: untold ? ["unknown"] : classesOf(policy, calls),
    changed,
    turnsSince: base === undefined ? null : turn - base.turn,
  });
  if (wanted) return undefined;
  reportSkip({ ...told, reason: "policy" });
  const captured = Promise.reject(new NotCaptured(policy.name));
  captured.catch(() => {});
  return { captured, durable: Promise.resolve() };
}

/** When the halves of a checkpoint are on disk; undefined where nobody here brings them there. What shares them MUST NOT count as durable before. */
function shareable({ catalog, persisting }: SessionDeps, base: number): Promise<unknown> | undefined {
  return persisting.get(base) ?? (catalog.checkpoint(base)?.state === "durable" ? Promise.resolve() : undefined);
}

/** Nothing changed since: the halves of `base` are those of now. */
function shared(base: CheckpointRow, durable: Promise<unknown>): Capture {
  const captured: Captured = {
    manifest: manifestOf(base),
    problems: JSON.parse(base.problems) as Problem[],
    bytes: 0,
    captureMs: 0,
  };
  return { captured: Promise.resolve(captured), durable: durable.then(() => {}) };
}

/**
 * Whether a turn that was begun without a capture needs one now that its reply is there.
 * @param calls those of the reply; undefined where the caller does not tell them
 */
export function needsCapture(
  deps: SessionDeps,
  row: CheckpointRow,
  { tools, calls }: { readonly tools: boolean; readonly calls: readonly ActionCall[] | undefined },
): boolean {
  const { effects: rules, policy } = deps;
  if (policy.always || row.state !== "not-restorable") return false;
  const isOwed = ({ tool }: ActionCall): boolean =>
    tool === checkpointTool.name || rules.isDestructive(tool) || rules.of(tool)?.class === "irreversible";
  if (calls?.some(isOwed) === true) return true;
  if (!tools) return false;
  const base = newestRestorable(deps, row);
  const turn: CaptureTurn = {
    thread: row.thread_name,
    turn: row.turn,
    moment: "reply",
    calls: calls ?? [],
    classes: calls === undefined ? ["unknown"] : classesOf(policy, calls),
    changed: "unknown",
    turnsSince: base === undefined ? null : row.turn - base.turn,
  };
  return policy.wants(turn);
}

/** The environment as it is now, before the tools of a reply: the row's halves where no file changed. */
export async function lookAgain(deps: SessionDeps, row: CheckpointRow): Promise<Pick<Captured, "manifest">> {
  const { environment, changedSince } = deps;
  if ((await askChanged(changedSince, manifestOf(row))) === "none") return { manifest: manifestOf(row) };
  return environment.capture({ unlessFilesDiffer: manifestOf(row) }).captured;
}

/** What differs from the parent; where turns are left out on purpose, from the newest before it that was captured. Null where that cannot be told. */
export async function changesSince(
  deps: SessionDeps,
  parent: CheckpointRow | undefined,
  now: Manifest | undefined,
): Promise<FileChanges | null> {
  // Nothing of the files is kept to be compared.
  if (deps.observer !== undefined) return null;
  const before = deps.policy.always ? parent : newestRestorable(deps, parent);
  if (before === undefined || now === undefined || before.state === "not-restorable") return null;
  return deps.environment.diff(manifestOf(before), now);
}
