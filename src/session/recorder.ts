// Records the pairs of a thread: starts them, publishes them in one transaction, sees them to the disk.
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { captureJob } from "../coordinator/jobs.ts";
import { beginPair, type Pair } from "../coordinator/pair.ts";
import type { ActionCall } from "../coordinator/policy/actions.ts";
import type { Captured } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import { cleanActivity } from "./clean.ts";
import { noteContacts } from "./contacts.ts";
import { ContextWriter } from "./context-writer.ts";
import type { SessionDeps, StoredContext } from "./deps.ts";
import { giveFiles } from "./gone.ts";
import { captureLate, reasonOf } from "./late-capture.ts";
import { noActivity } from "./move.ts";
import { persist, persisted } from "./persist.ts";
import { describeFiles, leaveFiles } from "./places.ts";
import { changesSince, halfWithout, lookAgain, needsCapture } from "./turn-capture.ts";
import type { Activity, Context, Serializer, Timings } from "./types.ts";
import { isNotCaptured, NotCaptured } from "./uncaptured.ts";
import { checkpointId } from "./views.ts";

export interface PairRequest {
  readonly thread: ThreadRow;
  readonly kind: "turn" | "explicit";
  /** Null: the head's. */
  readonly context: Context | null;
  readonly label: string | null;
  readonly anchor: string | null;
  readonly activity: Activity;
  readonly signal?: AbortSignal | undefined;
  readonly seq: number;
  /** The thread's newest effect of which the context can tell; null for the head's context. */
  readonly effectsUpTo: number | null;
  /** The epoch in which the context was read; null for the head's, which is read when the pair's turn comes. */
  readonly issued: number | null;
}

export class Recorder {
  readonly #deps: SessionDeps;
  readonly #serializer: Serializer;
  readonly #contexts: ContextWriter;

  constructor(deps: SessionDeps, serializer: Serializer) {
    this.#deps = deps;
    this.#serializer = serializer;
    this.#contexts = new ContextWriter(serializer);
  }

  begin(request: PairRequest): Pair<CheckpointRow> {
    const { catalog, environment, coordinator, jobs, objects, track } = this.#deps;
    let wanted: "captured" | "durable" | undefined;
    let begun: Pair<CheckpointRow> | undefined;
    const started = coordinator.exclusive(async () => {
      // The turn pays for what it finds waiting for the disk: nothing piles up.
      await jobs.room(request.signal);
      return objects.use(async () => {
        reportProgress("checkpoint", "reading the workspace");
        noteContacts(this.#deps, request.thread);
        const known = request.kind === "turn" ? await halfWithout(this.#deps, request) : undefined;
        const pair = beginPair<StoredContext, CheckpointRow>({
          environment,
          known,
          jobs,
          signal: request.signal,
          storeContext: () => this.storeContext(catalog.thread(request.thread.name) as ThreadRow, request.context),
          publish: (stored, captured, failure, workMs) => this.#publish(request, stored, captured, failure, workMs),
          persist: (row) => persist(this.#deps, row),
        });
        begun = pair;
        if (wanted !== undefined) pair.promote(wanted);
        persisted(this.#deps, await pair.published, pair.durable);
        return pair;
      });
    });
    const published = started.then((pair) => pair.published);
    // `started` resolves when the pair is published: what is durable waits behind it, not inside of it.
    const durable = started.then((pair) => pair.durable);
    let workMs = 0;
    void started.then((pair) => {
      workMs = pair.workMs();
    }, ignore);
    published.catch(ignore);
    durable.catch(ignore);
    track(durable);
    const promote: Pair<CheckpointRow>["promote"] = (until) => {
      wanted = until;
      begun?.promote(until);
    };
    return { published, durable, promote, workMs: () => workMs };
  }

  async #publish(
    request: PairRequest,
    stored: StoredContext,
    captured: Captured | null,
    failure: unknown,
    workMs: number,
  ): Promise<CheckpointRow> {
    const { catalog } = this.#deps;
    const { thread, parent } = catalog.read(() => {
      const thread = catalog.thread(request.thread.name) as ThreadRow;
      const head = thread.head === null ? undefined : catalog.checkpoint(thread.head);
      return { thread, parent: request.kind === "turn" ? this.#behindSteps(head) : head };
    });
    await nextTurn();
    const changes = await changesSince(this.#deps, parent, captured?.manifest);
    await nextTurn();
    fault("checkpoint.before-commit");
    const row = catalog.addCheckpoint(
      {
        thread: thread.id,
        seq: request.seq,
        parent: parent?.id ?? null,
        turn: (parent?.turn ?? 0) + (request.kind === "turn" ? 1 : 0),
        kind: request.kind,
        state: captured === null ? "not-restorable" : "captured",
        reason: captured === null ? reasonOf(failure) : null,
        label: request.label,
        anchor: request.anchor,
        context: stored.name,
        messages: stored.messages,
        serializer: stored.serializer,
        manifest: captured?.manifest ?? null,
        changes,
        activity: cleanActivity(request.activity),
        problems: captured?.problems ?? [],
        timings: { exposedMs: 0, overlappedMs: workMs, bytes: (captured?.bytes ?? 0) + stored.bytes },
        lessons: JSON.parse(thread.lessons) as number[],
        effectsUpTo: request.effectsUpTo,
      },
      request.issued ?? catalog.epoch(),
    );
    fault("checkpoint.committed");
    if (request.kind === "explicit" && thread.gone !== null) giveFiles(this.#deps, thread.id, row);
    if (request.kind === "turn") {
      this.#deps.observer?.began({
        ...{ thread: thread.name, id: checkpointId(row), turn: row.turn, manifest: captured?.manifest, workMs },
        calls: request.activity.actions.map(({ tool, input }) => ({ tool, input })),
      });
    }
    // What was not captured are the files as they are all the same: states that wait belong to it, and cannot be returned to with it.
    if (captured !== null || failure instanceof NotCaptured) describeFiles(this.#deps, thread.id, row);
    return row;
  }

  /** A decision takes the place of the steps before it: they stay in the tree for the states that they belong to. */
  #behindSteps(head: CheckpointRow | undefined): CheckpointRow | undefined {
    let row = head;
    while (row?.kind === "step") row = row.parent === null ? undefined : this.#deps.catalog.checkpoint(row.parent);
    return row;
  }

  /**
   * A checkpoint of the files alone, none where they are those of the head. Runs alone.
   * @returns whether the head has the files now
   * @throws CAPTURE_FAILED with `onCaptureFailure: "stop"`
   */
  step(name: string): Promise<boolean> {
    const { catalog, environment, jobs, objects, track } = this.#deps;
    let letGo = ignore;
    const stepped = objects.use(async () => {
      const thread = catalog.thread(name) as ThreadRow;
      const head = thread.head === null ? undefined : catalog.checkpoint(thread.head);
      if (!this.#deps.policy.steps) {
        leaveFiles(this.#deps, thread.id, null);
        return false;
      }
      const capture = captureJob(jobs, environment, { promoted: true });
      letGo = capture.letGo;
      let captured: Captured;
      try {
        captured = await capture.captured;
      } catch (error) {
        if (this.#deps.onCaptureFailure === "stop") throw failed("The files", reasonOf(error));
        leaveFiles(this.#deps, thread.id, null);
        return false;
      }
      if (head !== undefined && isSame(head, captured)) {
        describeFiles(this.#deps, thread.id, head);
        capture.letGo();
        return true;
      }
      const context = await this.storeContext(thread, null);
      const changes = await changesSince(this.#deps, head, captured.manifest);
      const row = catalog.addCheckpoint(
        {
          thread: thread.id,
          seq: catalog.takeSeq(thread.id),
          parent: head?.id ?? null,
          turn: head?.turn ?? 0,
          kind: "step",
          state: "captured",
          reason: null,
          label: null,
          anchor: null,
          context: context.name,
          messages: context.messages,
          serializer: context.serializer,
          manifest: captured.manifest,
          changes,
          activity: noActivity,
          problems: captured.problems,
          timings: { exposedMs: captured.captureMs, overlappedMs: 0, bytes: captured.bytes + context.bytes },
          lessons: JSON.parse(thread.lessons) as number[],
        },
        catalog.epoch(),
      );
      describeFiles(this.#deps, thread.id, row);
      const durable = capture.persist(() => persist(this.#deps, row));
      durable.result.catch(ignore);
      persisted(this.#deps, row, durable.result);
      track(durable.result);
      if (this.#deps.gate === "durable") {
        durable.promote();
        await durable.result;
      }
      return true;
    });
    stepped.catch(() => letGo());
    return stepped;
  }

  /**
   * Before the tools of a reply: captures a turn that was begun without, where its policy asks for it or safety needs it.
   * @param calls undefined where the caller does not tell them
   * @throws CAPTURE_FAILED with `onCaptureFailure: "stop"`, STALE_EPOCH
   */
  async ready(
    row: CheckpointRow,
    reply: { readonly tools: boolean; readonly calls: readonly ActionCall[] | undefined },
    issued: number,
  ): Promise<CheckpointRow> {
    if (!needsCapture(this.#deps, row, reply)) return row;
    const captured = await captureLate(this.#deps, row, issued);
    this.#requireCaptured(captured);
    return captured;
  }

  async storeContext(thread: ThreadRow, context: Context | null): Promise<StoredContext> {
    const head = thread.head === null ? undefined : this.#deps.catalog.checkpoint(thread.head);
    if (context === null && head !== undefined) {
      return { name: head.context, messages: head.messages, serializer: head.serializer, bytes: 0 };
    }
    const batch = this.#deps.objects.batch();
    const wanted = context ?? { messages: [] };
    let name: string;
    try {
      name = await this.#contexts.put(batch, wanted, this.#deps.objects.generation());
    } catch (error) {
      batch.discard();
      throw error;
    }
    const bytes = await batch.commit();
    this.#contexts.keep();
    return { name, messages: wanted.messages.length, serializer: this.#serializer.name, bytes };
  }

  /** Waits as long as `gate` says. @throws CAPTURE_FAILED with `onCaptureFailure: "stop"` */
  async settled(pair: Pair<CheckpointRow>): Promise<CheckpointRow> {
    const { gate } = this.#deps;
    pair.promote(gate);
    const row = await (gate === "durable" ? pair.durable : pair.published);
    this.#requireCaptured(row);
    return row;
  }

  #requireCaptured(row: CheckpointRow): void {
    if (row.state !== "not-restorable" || isNotCaptured(row) || this.#deps.onCaptureFailure !== "stop") return;
    throw failed(checkpointId(row), row.reason ?? "", { checkpoint: checkpointId(row) });
  }

  /**
   * What changed while the model thought is not the agent's: notes whether tools run now, and from which state.
   * @param look "tool": whoever runs the first tool looks (`look`)
   */
  async markTools(row: CheckpointRow, tools: boolean, look: "now" | "tool"): Promise<void> {
    const { catalog, coordinator } = this.#deps;
    if (!tools) {
      if (row.tools === "unknown") catalog.markTools(row.id, "none", null);
    } else if (look === "tool") catalog.markTools(row.id, "waiting", null);
    else await coordinator.exclusive(() => this.look(row, "ran"));
  }

  /** Looks at the files before tools run. Runs alone. */
  async look(row: CheckpointRow, mark: "running" | "ran"): Promise<void> {
    const { catalog, jobs, objects } = this.#deps;
    if (row.state === "not-restorable") {
      // In which state they begin nobody knows; that the reply came, and that they do, is known.
      catalog.markTools(row.id, "ran", null);
      return;
    }
    const start = performance.now();
    try {
      await objects.use(async () => {
        const look = jobs.run("capture", () => lookAgain(this.#deps, row), { promoted: true });
        catalog.markTools(row.id, mark, (await look.result).manifest);
      });
    } catch {
      catalog.markTools(row.id, "unknown", null);
    }
    if (row.tools !== "waiting") return;
    const timings = JSON.parse(row.timings) as Timings;
    const waited = performance.now() - start;
    catalog.setTimings(row.id, { ...timings, exposedMs: timings.exposedMs + waited });
    this.#deps.observer?.waited({ thread: row.thread_name, id: checkpointId(row) }, waited);
  }

  /** @param settledMs of `exposedMs`, what was spent waiting for the pair itself */
  recordTimings(row: CheckpointRow, pair: Pair<CheckpointRow>, settledMs: number, exposedMs: number): void {
    const { bytes } = JSON.parse(row.timings) as Timings;
    const overlappedMs = Math.max(0, pair.workMs() - settledMs);
    this.#deps.catalog.setTimings(row.id, { exposedMs, overlappedMs, bytes } satisfies Timings);
  }
}

const isSame = (row: CheckpointRow, { manifest }: Captured): boolean =>
  row.state !== "not-restorable" && row.files === manifest.files && row.processes === manifest.processes;

const failed = (what: string, why: string, details: Record<string, unknown> = {}): RewindError =>
  new RewindError("CAPTURE_FAILED", `${what} could not be captured: ${why}.`, {
    hint: "Mend what is named and take the turn again.",
    details,
  });

const ignore = (): void => {};
