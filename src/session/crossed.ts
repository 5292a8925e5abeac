// The effects that a move of a thread's head leaves behind: which, whether it may, and what makes up for them.
import { RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import type { EffectRow } from "../store/effects.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import { contactedBy, isContact, leavesMachine } from "./contacts.ts";
import type { SessionDeps } from "./deps.ts";
import { returnedIn } from "./effect-results.ts";
import type { Effect } from "./effect-types.ts";
import { describeEffect, oneLine, toEffect } from "./effect-views.ts";
import { type IsKnown, knownAt, knownNow } from "./known-effects.ts";
import { lineBetween } from "./move.ts";
import { checkpointId } from "./views.ts";

/** Done, or perhaps done, and not made up for. */
const isInForce = ({ state }: EffectRow): boolean =>
  ["recorded", "completed", "compensating", "uncompensated"].includes(state);

/** What the conversation tells of now and would not tell of at `target`, oldest first. */
function crossedBy(deps: SessionDeps, thread: ThreadRow, target: CheckpointRow): EffectRow[] {
  const [now, then] = [knownNow(deps, thread), knownAt(target)];
  return deps.catalog.familyEffects(thread.id).filter((row) => isInForce(row) && now(row) && !then(row));
}

/** @throws EFFECT_CROSSED, which names the nearest checkpoint that may be returned to */
export function requireCrossable(deps: SessionDeps, thread: ThreadRow, target: CheckpointRow): void {
  const { effects: rules } = deps;
  const forbids = (row: EffectRow): boolean =>
    isContact(row) ? rules.network === "hold" && leavesMachine(row) : !rules.mayCross(toEffect(deps, row));
  const forbidden = crossedBy(deps, thread, target).filter(forbids);
  const newest = forbidden.at(-1);
  if (newest === undefined) return;
  const isAdmissible = (row: CheckpointRow): boolean => {
    const known = knownAt(row);
    return row.state !== "not-restorable" && forbidden.every((one) => known(one));
  };
  const nearest = lineBetween(deps, target.id, thread.head).find(isAdmissible);
  const id = checkpointId(target);
  const { description } = newest;
  throw new RewindError(
    "EFFECT_CROSSED",
    `Returning to ${id} would leave behind what is done in the world and must stay in this conversation: ${description}${forbidden.length > 1 ? `, and ${forbidden.length - 1} before it` : ""}.`,
    {
      hint:
        nearest === undefined
          ? "It was done after the last checkpoint: go on from here, and rewind to a later one if need be."
          : `The nearest checkpoint that you can return to is ${checkpointId(nearest)}.`,
      details: {
        checkpoint: id,
        nearest: nearest === undefined ? null : checkpointId(nearest),
        effects: forbidden.map((row) => row.id),
      },
    },
  );
}

/** Numbers of the effects for which this move is to make up, newest first. */
export function toCompensate(deps: SessionDeps, thread: ThreadRow, target: CheckpointRow): number[] {
  const { effects: rules } = deps;
  const can = (row: EffectRow): boolean => row.state === "completed" && rules.of(row.tool)?.compensate !== undefined;
  return crossedBy(deps, thread, target)
    .filter((row) => can(row) && rules.mayCompensate(toEffect(deps, row)))
    .map((row) => row.id)
    .reverse();
}

/** Runs them one after the other, each journaled before and after (F-42). What was begun before a kill is not begun again. */
export async function compensate(deps: SessionDeps, ids: readonly number[]): Promise<void> {
  const { catalog, effects: rules, syncLog } = deps;
  for (const id of ids) {
    const row = catalog.effect(id);
    if (row?.state === "compensating") {
      catalog.endEffect(
        id,
        "uncompensated",
        "the process ended while that was done: it is not known whether it succeeded",
      );
      await syncLog();
      continue;
    }
    const undo = row && rules.of(row.tool)?.compensate;
    // One that is ended already, or a program that does not know this tool.
    if (row?.state !== "completed" || undo === undefined) continue;
    catalog.endEffect(id, "compensating", null);
    try {
      await syncLog();
    } catch (error) {
      // It was not begun.
      catalog.endEffect(id, "completed", null);
      throw error;
    }
    fault("effect.compensating");
    let failure: string | null = null;
    try {
      await undo(JSON.parse(row.arguments), returnedIn(JSON.parse(catalog.effectResult(id) ?? "null")));
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
    }
    catalog.endEffect(id, failure === null ? "compensated" : "uncompensated", failure);
    await syncLog();
    fault("effect.compensated");
  }
}

export interface EffectsTold {
  /** In force, and not in the conversation. */
  readonly effects: readonly string[];
  /** In the conversation, and not in force any more. */
  readonly revoked: readonly string[];
  /** Places to which was connected, of which the conversation does not tell. */
  readonly contacted: readonly string[];
  readonly compensated: readonly string[];
  readonly uncompensated: readonly string[];
}

/**
 * What the conversation at `target` must be told of effects.
 * @param attempted those for which this move was to make up
 */
export function effectsToTell(
  deps: SessionDeps,
  thread: ThreadRow,
  target: CheckpointRow,
  attempted: readonly number[],
): EffectsTold {
  const known: IsKnown = knownAt(target);
  const rows = deps.catalog.familyEffects(thread.id);
  const lines = (chosen: readonly EffectRow[]): string[] => chosen.map((row) => describeEffect(toEffect(deps, row)));
  const tried = attempted.flatMap((id) => rows.find((row) => row.id === id) ?? []);
  const isPerhapsDone = (row: EffectRow): boolean =>
    row.state === "failed" && deps.effects.of(row.tool)?.onFailure === "unknown";
  const untold = rows.filter((row) => !known(row));
  return {
    effects: lines(
      untold.filter((row) => row.class !== "idempotent" && !isContact(row) && (isInForce(row) || isPerhapsDone(row))),
    ),
    contacted: contactedBy(untold),
    revoked: rows.filter((row) => known(row) && row.state === "compensated").map((row) => place(toEffect(deps, row))),
    compensated: tried.filter((row) => row.state === "compensated").map((row) => place(toEffect(deps, row))),
    uncompensated: tried
      .filter((row) => row.state !== "compensated")
      .map((row) => {
        const reason =
          row.state === "completed" ? "the program that did it does not run" : (row.note ?? "no reason was kept");
        return `${place(toEffect(deps, row))}: ${oneLine(reason, 300)}`;
      }),
  };
}

/** The same of a move that is only planned: what it would make up for counts as made up for. */
export function effectsToPlan(
  deps: SessionDeps,
  thread: ThreadRow,
  target: CheckpointRow,
): Pick<EffectsTold, "effects" | "contacted" | "compensated"> {
  const owed = toCompensate(deps, thread, target);
  const lineOf = (id: number): Effect => toEffect(deps, deps.catalog.effect(id) as EffectRow);
  const gone = new Set(owed.map((id) => describeEffect(lineOf(id))));
  const { effects, contacted } = effectsToTell(deps, thread, target, []);
  return {
    contacted,
    effects: effects.filter((line) => !gone.has(line)),
    compensated: owed.map((id) => place(lineOf(id))),
  };
}

const place = ({ description, checkpoint }: Effect): string =>
  checkpoint === null ? description : `${description} at ${checkpoint}`;
