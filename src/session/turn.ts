// A model decision under way: the pair is captured while the model thinks, and the reply's tools wait at its gate.
import { performance } from "node:perf_hooks";
import type { ActionCall } from "../coordinator/policy/actions.ts";
import { beginEvent } from "../events.ts";
import type { CheckpointRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { manifestOf } from "./move.ts";
import { replyName } from "./places.ts";
import type { PairRequest, Recorder } from "./recorder.ts";
import type { Activity, Checkpoint } from "./types.ts";
import { checkpointId } from "./views.ts";

export interface TurnOptions {
  /** Names this boundary; a second turn at the head's own boundary is the same turn (a retry). */
  readonly anchor?: string;
  readonly activity?: Activity;
  /** The epoch in which the context was read (`align` tells it); a rewind since then makes the turn stale. Default: the present one. */
  readonly epoch?: number;
  /** Ends the capture; the turn goes on and its checkpoint is listed as not restorable. */
  readonly signal?: AbortSignal;
}

export interface GateOptions {
  readonly tools?: boolean;
  readonly calls?: readonly ActionCall[] | undefined;
  readonly look?: "now" | "tool";
  readonly reply?: string | undefined;
}

export interface Turn {
  /** Id that the checkpoint has, or will have. */
  readonly id: string;
  /**
   * Call when the reply is there and before its tools run: resolves when the pair is captured (or durable).
   * @param options.look when the files are looked at again, so that what a person changed meanwhile is not the agent's. "now": before this resolves. "tool": when
   * the first tool enters (`enterTool`), for adapters that enter every tool; a person may be asked in between. Default "now".
   * @param options.tools false when the reply calls no tool: what changes until the next turn is then somebody else's.
   * @param options.calls the calls of the reply, with their arguments: where not every turn is captured, they say whether this one is, before they run. Where they are not
   * told and tools run, they may be of any kind.
   * @param options.reply names the reply as boundaries are named: a conversation that has lost what came before it still stands there.
   * @throws CAPTURE_FAILED with `onCaptureFailure: "stop"`, STALE_EPOCH when a rewind came first, DISK_FULL
   */
  gate(options?: GateOptions): Promise<Checkpoint>;
  /** Aborts with a rewind that makes the turn stale: the model call may end, what still comes of it is dropped. */
  readonly stale: AbortSignal;
  /** Resolves when the checkpoint is listed, or could not be made: from then on `admissible` judges with it. */
  readonly captured: Promise<void>;
  /** The model call failed or was given up: nothing waits for this turn any more. The pair is kept. */
  end(): void;
  /** Resolves with the checkpoint when it is on disk. */
  readonly durable: Promise<Checkpoint>;
}

interface TurnParts {
  readonly deps: SessionDeps;
  readonly recorder: Recorder;
  readonly view: (id: number) => Checkpoint;
  /** Ends the mark that a model call runs. */
  readonly leave: () => void;
  readonly stale: AbortSignal;
}

/** Starts the pair now. */
export function startTurn(parts: TurnParts, request: PairRequest & { readonly issued: number }): Turn {
  const { deps, recorder, view, leave, stale } = parts;
  const pair = recorder.begin(request);
  const durable = pair.durable.then((row) => view(row.id));
  durable.catch(() => {});
  const id = `c${request.seq}`;
  const told = beginEvent("turn", { thread: request.thread.name, checkpoint: id, kind: "turn" });
  return {
    id,
    stale,
    async gate(options = {}) {
      const start = performance.now();
      try {
        const settled = await recorder.settled(pair);
        const settledMs = performance.now() - start;
        const row = await beforeTools(deps, recorder, settled, options, request.issued);
        recorder.recordTimings(row, pair, settledMs, performance.now() - start);
        const checkpoint = view(row.id);
        const { tools = true, calls } = options;
        deps.observer?.replied({ thread: request.thread.name, id, tools, calls, timings: checkpoint.timings });
        told({ state: checkpoint.state, timings: checkpoint.timings });
        return checkpoint;
      } catch (error) {
        told({ error });
        throw error;
      } finally {
        leave();
      }
    },
    captured: pair.published.then(
      () => {},
      () => {},
    ),
    end() {
      leave();
      told({ abandoned: true });
    },
    durable,
  };
}

/** The same boundary again: its pair is there. */
export function resumeTurn(parts: TurnParts, row: CheckpointRow, issued: number): Turn {
  const { deps, recorder, view, leave, stale } = parts;
  const told = beginEvent("turn", { thread: row.thread_name, checkpoint: checkpointId(row), kind: "retry" });
  return {
    id: checkpointId(row),
    stale,
    async gate(options = {}) {
      try {
        await beforeTools(deps, recorder, row, options, issued);
        const checkpoint = view(row.id);
        told({ state: checkpoint.state });
        return checkpoint;
      } catch (error) {
        told({ error });
        throw error;
      } finally {
        leave();
      }
    },
    captured: Promise.resolve(),
    end() {
      leave();
      told({ abandoned: true });
    },
    durable: Promise.resolve(view(row.id)),
  };
}

/** @throws STALE_EPOCH when a rewind came before, or meanwhile */
async function beforeTools(
  deps: SessionDeps,
  recorder: Recorder,
  begun: CheckpointRow,
  { tools = true, look = "now", calls, reply }: GateOptions,
  issued: number,
): Promise<CheckpointRow> {
  const { catalog } = deps;
  catalog.requireEpoch(issued);
  const row = await recorder.ready(begun, { tools, calls }, issued);
  // From here on tools run, and nobody tells when.
  if (tools && look === "now") catalog.setActed(row.thread, false);
  // What was captured just now is what tools begin with.
  if (row.state !== begun.state && tools && look === "now") catalog.markTools(row.id, "ran", manifestOf(row));
  else await recorder.markTools(row, tools, look);
  catalog.requireEpoch(issued);
  if (reply !== undefined) catalog.nameState(row.thread, replyName(reply), row.id);
  return row;
}
