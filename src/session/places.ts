// Where a framework stands among states that it names itself (LangGraph's checkpoint ids), and which checkpoint each of them belongs to.
import type { CheckpointRow, Place, RewindRow, ThreadRow } from "../store/rows.ts";
import { requireRestorable } from "./admissible.ts";
import type { Aligned, Boundary } from "./alignment.ts";
import type { SessionDeps } from "./deps.ts";
import { noFiles, requireThere } from "./gone.ts";
import { decision, deliver, isTakenOver, undelivered } from "./pending.ts";
import type { RewindResult } from "./types.ts";
import { checkpointId } from "./views.ts";

/** By namespace, "" the framework's own: names of the states from which what runs now started. */
export type Position = Readonly<Record<string, string>>;

/** A state that the framework is about to store. */
export interface NamedState {
  readonly name: string;
  /** "" or, for a part that runs inside of another, its path: the part `a|b` runs inside of `a`. */
  readonly namespace: string;
  /** Name of the state before it. */
  readonly from: string | undefined;
  /** "step": what ran from `from` on led to it. "input": somebody brought something new. "copy": it is `from` once more, to go on from there another way. */
  readonly kind: "step" | "input" | "copy";
  /** In which states the parts around it are. */
  readonly around: Position;
}

/** What names a reply of the model among the states (F-49). */
export const replyName = (reply: string): string => `reply:${reply}`;

const nowhere: Place = { at: {}, touched: true, waiting: [] };

/**
 * Says which files belong to a state (F-46): those of a checkpoint, or the files as they are now, of which whoever looks next makes one.
 * @returns what to call when the framework has stored the state: killed in between, it goes on from the state before, and so do the files
 */
export function pairState(deps: SessionDeps, thread: ThreadRow, state: NamedState): () => void {
  const { catalog } = deps;
  const place = catalog.place(thread.id) ?? nowhere;
  const pending = undelivered(deps, thread);
  const taken = state.kind === "step" && isTakenOver(deps, pending, thread.head);
  const stands = isHere(deps, thread, place, state);
  const before = stands && state.kind !== "step" ? place.left : undefined;
  const here = stands && before === undefined;
  const again = state.kind === "step" && state.from !== undefined && place.storing?.from === state.from;
  const follows = here && state.kind === "step" && state.from !== undefined;
  const fromGone = !taken && state.from !== undefined && place.gone?.includes(state.from) === true;
  const storing = follows ? { name: state.name, from: state.from as string } : place.storing;
  if (follows) catalog.setPlace(thread.id, { ...place, storing });
  const wait = (): void =>
    catalog.setPlace(thread.id, { ...place, storing, waiting: [...new Set([...place.waiting, state.name])] });
  // What came of a state whose files are gone has none either, until somebody chooses some.
  if (fromGone) catalog.setPlace(thread.id, { ...place, storing, gone: [...(place.gone ?? []), state.name] });
  else if (before !== undefined) catalog.nameState(thread.id, state.name, before);
  else if (!here) {
    // What led to it ran once; the framework tries to store it again.
    const tried = again ? catalog.stateNamed(thread.id, place.storing?.name ?? "") : undefined;
    const row = tried ?? inherited(deps, thread, state);
    if (row !== undefined) catalog.nameState(thread.id, state.name, row.id);
    else if (state.from !== undefined && place.waiting.includes(state.from)) wait();
  } else if (pending.length > 0 && !taken) {
    // A rewind from outside came meanwhile, and the framework has not heard of it: its state belongs to what was left.
    const { left_at: left } = pending[0] as RewindRow;
    if (left !== null) catalog.nameState(thread.id, state.name, left);
  } else if (place.touched || place.waiting.length > 0 || state.kind === "input" || thread.head === null) wait();
  else catalog.nameState(thread.id, state.name, thread.head);
  return () => {
    const now = catalog.place(thread.id) ?? nowhere;
    if (here) catalog.setPlace(thread.id, { ...now, at: advanced(now.at, state), left: undefined, storing: undefined });
    if (taken) catalog.markDelivered(thread.id);
  };
}

/** Whether the files are at the state that came before; of one that was never seen that is taken for granted. */
function isHere(
  { catalog }: SessionDeps,
  thread: ThreadRow,
  { at, waiting }: Place,
  { namespace, from, kind, around }: NamedState,
): boolean {
  if (kind === "copy") return false;
  const top = around[""];
  if (namespace !== "" && top !== undefined && at[""] !== top) return false;
  if (from === undefined || at[namespace] === from) return true;
  return catalog.stateNamed(thread.id, from) === undefined && !waiting.includes(from);
}

function inherited(deps: SessionDeps, thread: ThreadRow, { from, around }: NamedState): CheckpointRow | undefined {
  const own = from === undefined ? undefined : deps.catalog.stateNamed(thread.id, from);
  return own ?? (from === undefined ? innermost(deps, thread, around) : undefined);
}

/** What was inside of the part whose state this is, has ended. */
function advanced(at: Position, { namespace, name }: NamedState): Position {
  const inside = (other: string): boolean => namespace === "" || other.startsWith(`${namespace}|`);
  return { ...Object.fromEntries(Object.entries(at).filter(([other]) => !inside(other))), [namespace]: name };
}

const inwards = (position: Position): string[] =>
  Object.keys(position)
    .sort((a, b) => b.length - a.length)
    .map((namespace) => position[namespace] as string);

/** The checkpoint of the innermost state that has one. */
function innermost({ catalog }: SessionDeps, thread: ThreadRow, position: Position): CheckpointRow | undefined {
  for (const name of inwards(position)) {
    const row = catalog.stateNamed(thread.id, name);
    if (row !== undefined) return row;
  }
  return undefined;
}

/** Whether something is known of the state's files. */
export const isKnown = ({ catalog }: SessionDeps, thread: ThreadRow, name: string): boolean =>
  catalog.stateNamed(thread.id, name) !== undefined || isUnnamed(catalog.place(thread.id), name);

/** The state has no checkpoint: not yet, or not any more. */
const isUnnamed = (place: Place | null, name: string): boolean =>
  place !== null && (place.waiting.includes(name) || place.gone?.includes(name) === true);

/** The files as they are now are those of `row`: states that waited for this get their checkpoint. */
export function describeFiles({ catalog, coordinator }: SessionDeps, thread: number, row: CheckpointRow): void {
  const place = catalog.place(thread);
  if (place === null) return;
  for (const name of place.waiting) catalog.nameState(thread, name, row.id);
  const { at, storing, gone } = place;
  catalog.setPlace(thread, { at, touched: coordinator.inTool(), waiting: [], storing, gone });
}

/**
 * The files are about to move.
 * @param left what they are, where that is known
 * @param untold the framework learns of it by the state that follows
 */
export function leaveFiles(deps: SessionDeps, thread: number, left: CheckpointRow | null, untold = false): void {
  const { catalog } = deps;
  if (left !== null && left.state !== "not-restorable") describeFiles(deps, thread, left);
  for (const { id } of catalog.threads()) {
    const place = catalog.place(id);
    if (place !== null && place.waiting.length > 0) catalog.setPlace(id, { ...place, waiting: [] });
  }
  const place = catalog.place(thread);
  if (place !== null && untold && left !== null) catalog.setPlace(thread, { ...place, left: left.id });
}

export interface PositionActions {
  /** Makes a checkpoint of the files as they are, or finds the head to be one. False where they cannot be captured. */
  step(): Promise<boolean>;
  /** @throws SHARED_ENVIRONMENT */
  admit(target: CheckpointRow): Promise<void>;
  move(target: CheckpointRow): Promise<void>;
  result(row: RewindRow): Promise<RewindResult>;
  /** Of tools, that the framework has behind the head. */
  results(): readonly Boundary[];
}

export interface Run {
  readonly at: "model" | "tools";
  /** What tools of an earlier run from there did is to go. */
  readonly anew: boolean;
  /** Whoever began it named the state: a later act than the rewinds that wait. */
  readonly travel: boolean;
}

/** Brings the files to where the framework stands (F-47); undefined where nothing is known of its states. */
export async function alignPosition(
  deps: SessionDeps,
  thread: ThreadRow,
  given: Position,
  { at, anew, travel }: Run,
  actions: PositionActions,
): Promise<Aligned | undefined> {
  const { catalog } = deps;
  const place = catalog.place(thread.id);
  if (place === null) return undefined;
  // Parts that keep no states of their own have names that nobody stores.
  const position = Object.fromEntries(Object.entries(given).filter(([, name]) => isKnown(deps, thread, name)));
  if (position[""] === undefined) return undefined;
  const stays = place.at[""] === position[""] && !(anew && place.touched);
  const elsewhere = Object.keys(position).some((name) => (place.at[name] ?? position[name]) !== position[name]);
  const stateName = inwards(position)[0] as string;
  const gone = place.gone?.includes(stateName) === true;
  const target =
    (stays && !elsewhere) || gone || place.waiting.includes(stateName) ? undefined : innermost(deps, thread, position);
  const pending = undelivered(deps, thread);
  const stand = (touched: boolean): void => {
    const now = catalog.place(thread.id) ?? nowhere;
    const left = stays ? place.left : undefined;
    catalog.setPlace(thread.id, { ...now, at: { ...(stays ? place.at : {}), ...position }, touched, left });
  };
  const stay = async (): Promise<Aligned> => {
    stand(place.touched);
    let begins: Aligned["begins"] = place.touched ? undefined : "unseen";
    if (at === "tools") {
      if (place.waiting.length > 0) begins = (await actions.step()) ? "captured" : undefined;
      stand(true);
    }
    const head = catalog.threads().find((row) => row.id === thread.id)?.head ?? null;
    return head === null
      ? { status: "new", epoch: catalog.epoch() }
      : { status: "current", checkpoint: idOf(deps, head), epoch: catalog.epoch(), begins };
  };
  if (target === undefined) {
    if (pending.length > 0) return deliver(deps, pending, actions.result);
    if (gone) throw noFiles(deps, thread);
    requireThere(deps, thread, actions.results());
    return stay();
  }
  if (pending.length > 0) {
    const stood = pending.map((row) => decision(deps, row.head_before)?.id);
    const passed = travel || isTakenOver(deps, pending, thread.head);
    if (stood.includes(decision(deps, target.id)?.id) || !passed) {
      stand(place.touched);
      return deliver(deps, pending, actions.result);
    }
    catalog.markDelivered(thread.id);
  }
  if ((target.id === thread.head || target.id === decision(deps, thread.head)?.id) && !place.touched) return stay();
  requireRestorable(deps, target, "both");
  await actions.admit(target);
  // Nowhere while they move: killed in between, that is found out.
  catalog.setPlace(thread.id, { ...nowhere, waiting: place.waiting, gone: place.gone });
  await actions.move(target);
  stand(at === "tools");
  return { status: "moved", checkpoint: checkpointId(target), epoch: catalog.epoch(), begins: "unseen" };
}

/**
 * Brings the files to a state that the framework names, at once and exactly; rewinds that wait are passed over.
 * @param anew false: where they stand there already, what was begun behind it or changed since stays
 * @returns undefined when they stay as they are and no checkpoint is known to have them
 */
export async function checkoutPosition(
  deps: SessionDeps,
  thread: ThreadRow,
  given: Position,
  anew: boolean,
  { admit, move }: Pick<PositionActions, "admit" | "move">,
): Promise<CheckpointRow | undefined> {
  const { catalog, environment } = deps;
  const place = catalog.place(thread.id) ?? nowhere;
  const position = Object.fromEntries(Object.entries(given).filter(([, name]) => isKnown(deps, thread, name)));
  const name = inwards(position)[0] as string;
  if (place.waiting.includes(name)) return undefined;
  const stands = Object.entries(position).every(([namespace, name]) => place.at[namespace] === name);
  const keeps = stands && !anew;
  const pending = undelivered(deps, thread);
  const left = pending[0]?.left_at ?? null;
  if (place.gone?.includes(name) === true && left === null) throw noFiles(deps, thread);
  const target = keeps && left !== null ? catalog.checkpoint(left) : innermost(deps, thread, position);
  if (target === undefined) return undefined;
  requireRestorable(deps, target, "both");
  const { manifest } = await environment.capture().captured;
  const isThere = manifest.files === target.files && manifest.processes === target.processes;
  if (keeps && pending.length === 0) return isThere ? target : undefined;
  await admit(target);
  // Nowhere while they move: killed in between, that is found out.
  catalog.setPlace(thread.id, { ...nowhere, waiting: place.waiting, gone: place.gone });
  catalog.markDelivered(thread.id);
  if (!isThere || target.id !== thread.head) await move(target);
  const { waiting, gone } = catalog.place(thread.id) ?? nowhere;
  catalog.setPlace(thread.id, { at: keeps ? place.at : position, touched: false, waiting, gone });
  return target;
}

/** Brings the files back to where the framework stands, before a tool runs there. */
export async function moveInPlace(
  { catalog }: SessionDeps,
  thread: ThreadRow,
  move: () => Promise<void>,
): Promise<void> {
  const place = catalog.place(thread.id);
  // Nowhere while they move: killed in between, that is found out.
  if (place !== null) catalog.setPlace(thread.id, { ...nowhere, waiting: place.waiting, gone: place.gone });
  await move();
  const { waiting } = catalog.place(thread.id) ?? nowhere;
  if (place !== null) catalog.setPlace(thread.id, { ...place, touched: true, waiting });
}

const idOf = ({ catalog }: SessionDeps, head: number): string =>
  checkpointId(catalog.checkpoint(head) as CheckpointRow);
