// Rows of lessons and effects as a bundle has them.
import type { EffectRow } from "../store/effects.ts";
import type { Row } from "./schema.ts";

/** By the ids of this store. */
export type Numbers = ReadonlyMap<number, number>;

interface StoredLesson {
  readonly rewind: number;
  readonly text: string;
  readonly parts: string | null;
  readonly covers: string | null;
  readonly created_at: string;
}

/** @param told a JSON list of lessons by their numbers in the bundle */
export function lessonRow(row: StoredLesson, rewinds: Numbers, told: (lessons: string) => number[]): Row {
  return {
    table: "lesson",
    rewind: rewinds.get(row.rewind) as number,
    text: row.text,
    parts: row.parts === null ? null : JSON.parse(row.parts),
    covers: row.covers === null ? null : told(row.covers),
    createdAt: row.created_at,
  };
}

/** @param thread the one that is exported: calls of others have no name in it */
export function effectRow(
  row: EffectRow & { readonly result: string | null },
  thread: number,
  checkpoints: Numbers,
  effects: Numbers,
): Row {
  return {
    table: "effect",
    checkpoint: row.checkpoint === null ? null : (checkpoints.get(row.checkpoint) ?? null),
    seq: row.seq,
    epoch: row.epoch,
    call: row.thread === thread ? row.call : null,
    tool: row.tool,
    class: row.class as "irreversible",
    description: row.description,
    arguments: row.arguments,
    consumes: JSON.parse(row.consumes),
    state: row.state,
    result: row.result,
    shown: row.shown,
    note: row.note,
    replays: row.replays === null ? null : (effects.get(row.replays) ?? null),
    consent: row.consent,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}
