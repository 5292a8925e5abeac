// Rows of effects: what tools did outside of the environment. Recorded before the call, ended after it, and never touched by a rewind (F-44).
import type { Statements } from "./statements.ts";

/**
 * `recorded`: begun, nobody knows more; `completed`, `failed`: it ended so; `withdrawn`: it was not called; `replayed`: another's result was given again;
 * `compensating`: its compensation was begun; `compensated`, `uncompensated`: that ended so.
 */
export type EffectRowState =
  | "recorded"
  | "completed"
  | "failed"
  | "withdrawn"
  | "replayed"
  | "compensating"
  | "compensated"
  | "uncompensated";

export interface EffectRow {
  readonly id: number;
  readonly thread: number;
  /** The thread's head when it was recorded; null when there was none or it was pruned. */
  readonly checkpoint: number | null;
  /** That checkpoint's number. */
  readonly seq: number | null;
  readonly epoch: number;
  /** The adapter's name for the call; null where none was given. */
  readonly call: string | null;
  readonly tool: string;
  readonly class: string;
  readonly description: string;
  /** JSON, with sorted keys. */
  readonly arguments: string;
  /** JSON: digests of the one-time credentials that it used up. */
  readonly consumes: string;
  readonly state: EffectRowState;
  /** Short form of the result for people and models. */
  readonly shown: string | null;
  /** Why it failed, why its result is not kept, why its compensation failed. */
  readonly note: string | null;
  /** Of a `replayed` one: whose result was given. */
  readonly replays: number | null;
  /** Token with which an equivalent call may be made once more. */
  readonly consent: string | null;
  readonly created_at: string;
  readonly ended_at: string | null;
}

/** What a call returned. */
export interface EffectResult {
  /** JSON; null where it could not be kept. */
  readonly result: string | null;
  readonly shown: string | null;
}

export interface NewEffect
  extends Pick<
    EffectRow,
    "thread" | "checkpoint" | "seq" | "epoch" | "call" | "tool" | "class" | "description" | "arguments"
  > {
  readonly consumes: readonly string[];
}

/** Effects that a context tells of: those of a thread with numbers above `after`, up to `upTo`. */
export type KnownEffects = readonly (readonly [thread: number, after: number, upTo: number])[];

export const knows = (known: KnownEffects, effect: Pick<EffectRow, "id" | "thread">): boolean =>
  known.some(([thread, after, upTo]) => effect.thread === thread && effect.id > after && effect.id <= upTo);

/** `known` and what the thread has done since `after`. */
export function knownWith(known: KnownEffects, thread: number, after: number, upTo: number): KnownEffects {
  if (upTo <= after) return known;
  return [...known.filter((one) => one[0] !== thread || one[1] !== after), [thread, after, upTo]];
}

/** Results can be long: they are read one at a time. */
const columns = `e.id, e.thread, e.checkpoint, e.seq, e.epoch, e.call, e.tool, e.class, e.description, e.arguments, e.consumes, e.state, e.shown, e.note,
  e.replays, e.consent, e.created_at, e.ended_at`;

/** A thread, what it was forked from, and all that were forked from these. */
const family = `WITH RECURSIVE up(thread) AS (SELECT ? UNION SELECT b.source FROM branch b JOIN up ON b.thread = up.thread),
  family(thread) AS (SELECT thread FROM up UNION SELECT b.thread FROM branch b JOIN family ON b.source = family.thread)`;

/** @param statements whose writes the environment's fence guards */
export function openEffects({ get, all, run, transaction }: Statements, environment: string) {
  const now = (): string => new Date().toISOString();
  const effect = (id: number): EffectRow | undefined => get(`SELECT ${columns} FROM effect e WHERE id = ?`, id);

  const effectByCall = (thread: number, call: string): EffectRow | undefined =>
    get(`SELECT ${columns} FROM effect e WHERE thread = ? AND call = ?`, thread, call);

  return {
    effect,
    effectByCall,
    /** Number of the thread's newest effect; 0 when there is none. */
    effectMark: (thread: number): number =>
      get<{ id: number }>("SELECT coalesce(max(id), 0) AS id FROM effect WHERE thread = ?", thread)?.id ?? 0,
    effectsFrom: (thread: number): number =>
      get<{ effects_from: number }>("SELECT effects_from FROM thread WHERE id = ?", thread)?.effects_from ?? 0,
    /** Of the thread and of all that are related to it by forks, oldest first; with `tool` those of one tool. */
    familyEffects: (thread: number, tool?: string): EffectRow[] =>
      tool === undefined
        ? all(
            `${family} SELECT ${columns} FROM effect e WHERE thread IN (SELECT thread FROM family) ORDER BY id`,
            thread,
          )
        : all(
            `${family} SELECT ${columns} FROM effect e WHERE thread IN (SELECT thread FROM family) AND tool = ? ORDER BY id`,
            thread,
            tool,
          ),
    effectsAt: (checkpoint: number): EffectRow[] =>
      all(`SELECT ${columns} FROM effect e WHERE checkpoint = ? ORDER BY id`, checkpoint),
    /** The newest that used up one of these credentials, in this environment or in the thread's family. */
    consumerOf: (thread: number, digests: readonly string[]): EffectRow | undefined =>
      get(
        `${family} SELECT ${columns} FROM effect e JOIN thread t ON t.id = e.thread
         WHERE (t.environment = ? OR e.thread IN (SELECT thread FROM family)) AND e.state NOT IN ('failed', 'withdrawn', 'replayed')
           AND EXISTS (SELECT 1 FROM json_each(e.consumes) used JOIN json_each(?) wanted ON used.value = wanted.value)
         ORDER BY e.id DESC LIMIT 1`,
        thread,
        environment,
        JSON.stringify(digests),
      ),

    /**
     * Journals a call that is about to be made. Undefined when the consent for it was used up, or the same call begun, meanwhile.
     * @param again the row of the same call, whose first try did nothing
     * @param consent the effect whose token allows this call, which uses it up
     */
    recordEffect(
      row: NewEffect,
      guard: () => void,
      { again, consent }: { readonly again?: number | undefined; readonly consent?: EffectRow | undefined } = {},
    ): EffectRow | undefined {
      return transaction(() => {
        guard();
        const same = row.call === null ? undefined : effectByCall(row.thread, row.call);
        if (same !== undefined && same.id !== again) return undefined;
        if (consent !== undefined) {
          if (effect(consent.id)?.consent !== consent.consent) return undefined;
          run("UPDATE effect SET consent = NULL WHERE id = ?", consent.id);
        }
        if (again !== undefined) {
          run(
            `UPDATE effect SET state = 'recorded', checkpoint = ?, seq = ?, epoch = ?, description = ?, arguments = ?, consumes = ?, note = NULL,
               ended_at = NULL WHERE id = ?`,
            row.checkpoint,
            row.seq,
            row.epoch,
            row.description,
            row.arguments,
            JSON.stringify(row.consumes),
            again,
          );
          return effect(again);
        }
        return effect(insert(row, "recorded", null));
      });
    },
    /** Another effect's result is given for this call: from now on this branch knows of it. */
    recordReplay: (row: NewEffect, of: number, guard: () => void): EffectRow =>
      transaction(() => {
        guard();
        return effect(insert({ ...row, consumes: [] }, "replayed", of)) as EffectRow;
      }),
    /** Done already, by nobody's call. */
    noteEffect: (row: NewEffect): number => transaction(() => insert(row, "completed", null)),
    /** JSON; null while it is not known, and where it could not be kept. */
    effectResult: (id: number): string | null =>
      get<{ result: string | null }>("SELECT result FROM effect WHERE id = ?", id)?.result ?? null,
    /** @param result left as it is where it is not given */
    endEffect(id: number, state: EffectRowState, note: string | null, result?: EffectResult): EffectRow {
      return transaction(() => {
        run("UPDATE effect SET state = ?, note = ?, ended_at = ? WHERE id = ?", state, note, now(), id);
        if (result !== undefined)
          run("UPDATE effect SET result = ?, shown = ? WHERE id = ?", result.result, result.shown, id);
        return effect(id) as EffectRow;
      });
    },
    setConsent: (id: number, token: string): void => {
      run("UPDATE effect SET consent = ? WHERE id = ?", token, id);
    },
  };

  function insert(row: NewEffect, state: EffectRowState, replays: number | null): number {
    return run(
      `INSERT INTO effect (thread, checkpoint, seq, epoch, call, tool, class, description, arguments, consumes, state, replays, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.thread,
      row.checkpoint,
      row.seq,
      row.epoch,
      row.call,
      row.tool,
      row.class,
      row.description,
      row.arguments,
      JSON.stringify(row.consumes),
      state,
      replays,
      now(),
    );
  }
}
