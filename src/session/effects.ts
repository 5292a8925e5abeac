// A tool's call around which effects are kept: recorded before, ended after, and answered from the record where it is done already (F-44).
import { createHash } from "node:crypto";
import { z } from "zod";
import { asWriteFailure, isRewindError, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import type { EffectResult, EffectRow, NewEffect } from "../store/effects.ts";
import type { CheckpointRow } from "../store/rows.ts";
import { canonical } from "./canonical.ts";
import { askConsent } from "./consent.ts";
import type { SessionDeps } from "./deps.ts";
import { type Asked, type Blocker, type Found, findBlocker } from "./effect-blockers.ts";
import { bothOf, keptIn } from "./effect-results.ts";
import type { EffectDefinition, ToolArguments } from "./effect-rules.ts";
import { consumedText, heldText, notCapturedText, stillRunningText } from "./effect-texts.ts";
import type { Effect, ToolOutcome, ToolRun } from "./effect-types.ts";
import { descriptionLimit, oneLine, resultText, toEffect } from "./effect-views.ts";
import type { Tree } from "./tree.ts";
import { checkpointId } from "./views.ts";

/** Characters of a result's JSON that are kept, so that it can be given again. */
export const resultLimit = 256 * 1024;
const reasonLimit = 400;

export class Effects {
  readonly #deps: SessionDeps;
  readonly #tree: Tree;
  readonly #capture: () => Promise<unknown>;

  /** @param capture makes a checkpoint of the files as they are, which becomes the head */
  constructor(deps: SessionDeps, tree: Tree, capture: () => Promise<unknown>) {
    this.#deps = deps;
    this.#tree = tree;
    this.#capture = capture;
  }

  async run<T>(call: ToolRun<T>, run: (args: ToolArguments) => T | Promise<T>): Promise<ToolOutcome<T>> {
    const { catalog, effects: rules, observer } = this.#deps;
    if (observer !== undefined) return { status: "ran", result: await run(call.args), effect: null };
    const definition = rules.of(call.tool);
    const destructive = call.destructive === true || rules.isDestructive(call.tool);
    if (definition === undefined && !destructive) {
      return { status: "ran", result: await run(call.args), effect: null };
    }
    const issued = call.epoch ?? catalog.epoch();
    const owed = destructive || definition?.class === "irreversible";
    if (owed) await this.#requireHalf();
    const thread = this.#tree.made();
    const head = thread.head === null ? undefined : (catalog.checkpoint(thread.head) as CheckpointRow);
    if (head?.state === "not-restorable" && owed) {
      return { status: "held", message: notCapturedText(call.tool, checkpointId(head), head.reason), effect: null };
    }
    if (definition === undefined) return { status: "ran", result: await run(call.args), effect: null };

    const { args, confirm } = withoutConfirm(call.args, definition.confirm ?? "confirm");
    const asked: Asked = {
      thread,
      tool: call.tool,
      args,
      callId: call.callId ?? null,
      inside: call.inside,
      consumes: credentialsOf(definition.consumes?.(args)),
      confirm,
    };
    const row: NewEffect = {
      thread: thread.id,
      checkpoint: head?.id ?? null,
      seq: head?.seq ?? null,
      epoch: issued,
      call: asked.callId,
      tool: call.tool,
      class: definition.class,
      description: oneLine(describe(definition.describe, call.tool, args), descriptionLimit),
      arguments: canonical(args, "The arguments of a call"),
      consumes: asked.consumes,
    };
    for (;;) {
      const found = findBlocker(this.#deps, asked);
      const answer = await this.#answer(call, asked, found, row, issued);
      if (answer !== undefined) return answer;
      if (definition.class === "irreversible" && head !== undefined) await this.#makeDurable(head);
      const consent =
        confirm !== undefined && found.blocker?.effect.consent === confirm ? found.blocker.effect : undefined;
      const recorded = catalog.recordEffect(row, () => catalog.requireEpoch(issued), {
        again: found.again?.id,
        consent,
      });
      if (recorded !== undefined) return this.#call(call, recorded, () => run(args), issued);
      // The consent was used up, or the same call begun, while the disk was waited for.
    }
  }

  /** Where turns are left out on purpose, and nobody told that this one has such a call: what it is to be taken back to is captured now. */
  async #requireHalf(): Promise<void> {
    const { catalog, policy } = this.#deps;
    const { head } = this.#tree.made();
    if (policy.always || head === null || catalog.checkpoint(head)?.state !== "not-restorable") return;
    try {
      await this.#capture();
    } catch (error) {
      // Then it is held.
      if (!isRewindError(error, "CAPTURE_FAILED")) throw error;
    }
  }

  /** Undefined when the call may be made. */
  async #answer<T>(
    call: ToolRun<T>,
    asked: Asked,
    { blocker }: Found,
    row: NewEffect,
    issued: number,
  ): Promise<ToolOutcome<T> | undefined> {
    if (blocker === undefined) return undefined;
    const { catalog, effects: rules, running } = this.#deps;
    const { effect, why } = blocker;
    if (why === "same" && running.has(effect.id)) {
      return { status: "held", message: stillRunningText(this.#view(effect)), effect: this.#view(effect) };
    }
    const stored =
      effect.state === "completed" || effect.state === "uncompensated" ? catalog.effectResult(effect.id) : null;
    if (why === "same" && stored !== null) return this.#replay(call, effect, stored);
    if (asked.confirm !== undefined && asked.confirm === effect.consent) return undefined;
    const policy = rules.onRepeat(asked.tool);
    if (policy === "allow" && why !== "same") return undefined;
    if (policy === "replay" && why === "done" && stored !== null) {
      catalog.recordReplay(row, effect.id, () => catalog.requireEpoch(issued));
      return this.#replay(call, effect, stored);
    }
    return this.#held(asked, effect, why);
  }

  #replay<T>(call: ToolRun<T>, effect: EffectRow, json: string): ToolOutcome<T> {
    const stored: unknown = JSON.parse(json);
    const kept = keptIn(stored);
    const result = call.decode === undefined ? (kept as T) : call.decode(kept);
    return { status: "replayed", result, effect: this.#view(effect) };
  }

  async #held<T>(asked: Asked, row: EffectRow, why: Blocker["why"]): Promise<ToolOutcome<T>> {
    const effect = this.#view(row);
    const token = await askConsent(this.#deps, row, effect);
    const field = this.#deps.effects.of(asked.tool)?.confirm ?? "confirm";
    const text = why === "consumed" ? consumedText : heldText;
    return { status: "held", message: text(effect, token, field), effect };
  }

  /** The checkpoint to which a rewind would return must outlive the machine before something is done that nothing takes back. */
  async #makeDurable(head: CheckpointRow): Promise<void> {
    if (head.state === "durable") return;
    await this.#deps.objects.sync();
    this.#deps.catalog.markDurable(head.id);
  }

  async #call<T>(call: ToolRun<T>, row: EffectRow, run: () => T | Promise<T>, issued: number): Promise<ToolOutcome<T>> {
    const { assertOpen, catalog, running, syncLog } = this.#deps;
    running.add(row.id);
    try {
      try {
        await syncLog();
        fault("effect.recorded");
        // Somebody may have rewound, closed or taken over while the disk was waited for.
        assertOpen();
        catalog.requireEpoch(issued);
      } catch (error) {
        this.#withdraw(row);
        throw error;
      }
      let result: T;
      try {
        result = await run();
      } catch (error) {
        if (call.isPause?.(error) === true) this.#withdraw(row);
        else await this.#end(row, "failed", error instanceof Error ? error.message : String(error), nothing);
        throw error;
      }
      fault("effect.called");
      const failed = call.isFailure?.(result) === true;
      const { note, ...stored } = storable(resultOf(call, result));
      const ended = await this.#end(
        row,
        failed ? "failed" : "completed",
        failed ? (stored.shown ?? note) : note,
        stored,
      );
      fault("effect.completed");
      if (catalog.epoch() !== issued) throw overtaken(row);
      running.delete(row.id);
      return { status: "ran", result, effect: this.#view(ended) };
    } finally {
      running.delete(row.id);
    }
  }

  /** It was not called, or not to its end, and did nothing. What cannot be recorded stays "not known". */
  #withdraw(row: EffectRow): void {
    try {
      this.#deps.assertOpen();
      this.#deps.catalog.endEffect(row.id, "withdrawn", null);
    } catch (error) {
      if (!isRewindError(error)) throw error;
    }
  }

  async #end(
    row: EffectRow,
    state: "completed" | "failed",
    note: string | null,
    result: EffectResult,
  ): Promise<EffectRow> {
    try {
      this.#deps.assertOpen();
      const ended = this.#deps.catalog.endEffect(
        row.id,
        state,
        note === null ? null : note.slice(0, reasonLimit),
        result,
      );
      await this.#deps.syncLog();
      return ended;
    } catch (thrown) {
      const error = asWriteFailure(thrown, "the store's catalog");
      if (!isRewindError(error)) throw error;
      const how = state === "completed" ? "was done" : "failed";
      throw new RewindError(error.code, `${row.description} ${how}, but that could not be recorded: ${error.message}`, {
        hint: `Do not repeat it without a look at what it did. ${error.hint ?? ""}`.trim(),
        details: { ...error.details, effect: row.id },
        cause: error,
      });
    }
  }

  /** @throws BAD_ARGUMENT */
  settle(id: number, outcome: "done" | "not-done"): Effect {
    const { catalog, running } = this.#deps;
    const row = catalog.familyEffects(this.#tree.made().id).find((one) => one.id === id);
    if (row === undefined || running.has(id) || !["recorded", "compensating"].includes(row.state)) {
      throw new RewindError("BAD_ARGUMENT", `${id} is no effect of this thread whose end is not known.`, {
        hint: '`thread.effects()` lists them; those are in the state "unknown".',
      });
    }
    return this.#view(catalog.endEffect(id, outcome === "done" ? "completed" : "failed", `settled: ${outcome}`));
  }

  #view(row: EffectRow): Effect {
    return toEffect(this.#deps, row);
  }
}

type Describe = EffectDefinition["describe"] | undefined;

/** A description is for reading alone: one that cannot be made keeps no tool from its work. */
function describe(say: Describe, tool: string, args: unknown): string {
  try {
    const said = say?.(args);
    if (said !== undefined && said !== null) return `${said}`;
  } catch {
    // The arguments are not what it reckoned with.
  }
  return `${tool} ${canonical(args, "The arguments of a call")}`;
}

/** Their digests: they are compared, never told. An optional argument that is not there is none. @throws BAD_ARGUMENT */
function credentialsOf(given: unknown): string[] {
  const parsed = z.array(z.string().nullish()).nullish().safeParse(given);
  if (parsed.success) {
    const present = (parsed.data ?? []).filter((one) => typeof one === "string");
    return present.map((one) => createHash("sha256").update(one).digest("hex"));
  }
  throw new RewindError("BAD_ARGUMENT", "consumes: what it returned is no list of texts.", {
    hint: "Return the one-time credentials of the call, for example [args.token].",
  });
}

const overtaken = (row: EffectRow): RewindError =>
  new RewindError("STALE_EPOCH", `${row.description} was done, but the conversation was rewound meanwhile.`, {
    hint: "Drop its result and go on from the restored context.",
    details: { effect: row.id },
  });

function resultOf<T>({ encode, returned }: ToolRun<T>, result: T): unknown {
  const encoded = encode === undefined ? result : encode(result);
  return returned === undefined ? encoded : bothOf(returned(result), encoded);
}

const nothing: EffectResult = { result: null, shown: null };

function storable(value: unknown): EffectResult & { readonly note: string | null } {
  let json: string;
  try {
    json = JSON.stringify(value) ?? "null";
  } catch {
    return { ...nothing, note: "its result is not JSON and was not kept" };
  }
  const shown = resultText(json);
  if (json.length <= resultLimit) return { result: json, shown, note: null };
  return { result: null, shown, note: `its result of ${json.length} characters was too long to keep` };
}

/** The token is ours, whatever the model puts there: it never makes two calls differ. */
function withoutConfirm(args: unknown, field: string): { args: unknown; confirm: string | undefined } {
  if (typeof args !== "object" || args === null || Array.isArray(args) || !Object.hasOwn(args, field)) {
    return { args, confirm: undefined };
  }
  const { [field]: confirm, ...rest } = args as Record<string, unknown>;
  return { args: rest, confirm: typeof confirm === "string" ? confirm : undefined };
}
