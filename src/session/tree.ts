// A thread's checkpoints as they are looked at: one, a lineage, the whole tree, the list for the model.
import { RewindError } from "../errors.ts";
import type { CheckpointRow, ThreadRow } from "../store/catalog.ts";
import { requireCheckpoint } from "./admissible.ts";
import type { SessionDeps } from "./deps.ts";
import { maskSecrets } from "./lessons.ts";
import { type ListedCheckpoint, listText } from "./texts.ts";
import type { Checkpoint } from "./types.ts";
import { parseCheckpointId, toCheckpoint } from "./views.ts";

export class Tree {
  readonly #deps: SessionDeps;
  readonly #name: string;

  constructor(deps: SessionDeps, name: string) {
    this.#deps = deps;
    this.#name = name;
  }

  /** Undefined before the first checkpoint. */
  get thread(): ThreadRow | undefined {
    return this.#deps.catalog.thread(this.#name);
  }

  /** The thread's row, made when it is new. @throws CLOSED */
  made(): ThreadRow {
    this.#deps.assertOpen();
    return this.thread ?? this.#deps.catalog.makeThread(this.#name);
  }

  /** @throws UNKNOWN_CHECKPOINT, BAD_CHECKPOINT */
  find(id: string): CheckpointRow {
    return requireCheckpoint(this.#deps, this.thread, parseCheckpointId(id));
  }

  /** @throws UNKNOWN_CHECKPOINT */
  head(): CheckpointRow {
    const head = this.thread?.head;
    if (head !== null && head !== undefined) return this.#deps.catalog.checkpoint(head) as CheckpointRow;
    throw new RewindError("UNKNOWN_CHECKPOINT", `Thread "${this.#name}" has no checkpoint yet.`, {
      hint: "Make one first.",
    });
  }

  view(id: number): Checkpoint {
    const { catalog } = this.#deps;
    const row = catalog.checkpoint(id) as CheckpointRow;
    const head = this.thread?.head ?? null;
    return toCheckpoint(row, {
      head,
      isActive: (one) => one === head || catalog.isAncestor(one, head),
      seqOf: (one) => catalog.checkpoint(one)?.seq,
    });
  }

  /** The head's lineage, oldest first; with `all` the whole thread in the order of making. */
  list(all: boolean): Checkpoint[] {
    const { thread } = this;
    if (thread === undefined) return [];
    const { catalog } = this.#deps;
    const lineage = catalog.lineage(thread.head).reverse();
    const rows = all ? catalog.checkpoints(thread.id) : lineage;
    const active = new Set(lineage.map((row) => row.id));
    const seqs = new Map([...lineage, ...rows].map((row) => [row.id, row.seq]));
    const view = { head: thread.head, isActive: (id: number) => active.has(id), seqOf: (id: number) => seqs.get(id) };
    return rows.map((row) => toCheckpoint(row, view));
  }

  /** As `list_checkpoints` gives it to the model. */
  text(): string {
    const all = this.list(true);
    const children = new Map<string | null, Checkpoint[]>();
    for (const one of all) children.set(one.parent, [...(children.get(one.parent) ?? []), one]);
    const listed = (one: Checkpoint): ListedCheckpoint => {
      const next = children.get(one.id) ?? [];
      return { checkpoint: one, next: next.find((child) => child.active) ?? next.at(-1) ?? null };
    };
    const newestFirst = (list: readonly Checkpoint[]): ListedCheckpoint[] => [...list].reverse().map(listed);
    return maskSecrets(listText(newestFirst(this.list(false)), newestFirst(all.filter((one) => !one.active))));
  }

  /** True when an adapter names this thread's boundaries: its framework must be given a context that it did not restore itself. */
  isDriven(thread: ThreadRow): boolean {
    return this.#deps.catalog.lineage(thread.head).some((row) => row.anchor !== null);
  }
}
