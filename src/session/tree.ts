// A thread's checkpoints as they are looked at: one, a lineage, the whole tree, the list for the model.
import { RewindError } from "../errors.ts";
import type { EffectRow } from "../store/effects.ts";
import type { CheckpointRow, ThreadRow } from "../store/rows.ts";
import { requireCheckpoint } from "./admissible.ts";
import type { SessionDeps } from "./deps.ts";
import type { Effect } from "./effect-types.ts";
import { isTold, toEffect } from "./effect-views.ts";
import { maskSecrets } from "./mask.ts";
import { observedReason } from "./observer.ts";
import { type ListedCheckpoint, listText } from "./texts.ts";
import type { Checkpoint } from "./types.ts";
import { branchId, checkpointId, toCheckpoint, type ViewContext } from "./views.ts";

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
    return requireCheckpoint(this.#deps, this.thread, id);
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
    return this.#deps.catalog.read(() => this.#view(id));
  }

  #view(id: number): Checkpoint {
    const { catalog } = this.#deps;
    const row = catalog.checkpoint(id) as CheckpointRow;
    const { thread } = this;
    const head = thread?.head ?? null;
    return this.#shown(row, {
      head,
      isActive: (one) => one === head || catalog.isAncestor(one, head),
      nameOf: this.#namer(thread),
      find: catalog.checkpoint,
      effectsOf: (one) => this.#told(catalog.effectsAt(one)),
    });
  }

  /** The head's lineage, oldest first; with `all` the whole thread and what was forked from it, in the order of making. */
  list(all: boolean): Checkpoint[] {
    return this.#deps.catalog.read(() => this.#list(all));
  }

  #list(all: boolean): Checkpoint[] {
    const { thread } = this;
    if (thread === undefined) return [];
    const { catalog } = this.#deps;
    const lineage = catalog.lineage(thread.head).reverse();
    const active = new Set(lineage.map((row) => row.id));
    const rows = all ? withInherited(catalog.familyCheckpoints(thread.id), lineage) : lineage;
    const known = new Map([...lineage, ...rows].map((row) => [row.id, row]));
    const nameOf = this.#namer(thread);
    const effects = new Map<number | null, EffectRow[]>();
    for (const row of catalog.familyEffects(thread.id)) {
      const here = effects.get(row.checkpoint);
      if (here === undefined) effects.set(row.checkpoint, [row]);
      else here.push(row);
    }
    const view: ViewContext = {
      head: thread.head,
      isActive: (id) => active.has(id),
      nameOf: (row) => (active.has(row.id) ? checkpointId(row) : nameOf(row)),
      find: (id) => known.get(id) ?? catalog.checkpoint(id),
      effectsOf: (id) => this.#told(effects.get(id) ?? []),
    };
    return rows.map((row) => this.#shown(row, view));
  }

  /** Of a turn that was observed the conversation alone is there. */
  #shown(row: CheckpointRow, view: ViewContext): Checkpoint {
    const shown = toCheckpoint(row, view);
    if (this.#deps.observer === undefined) return shown;
    return { ...shown, state: "not-restorable", reason: observedReason, environment: { files: null, processes: null } };
  }

  #told(rows: readonly EffectRow[]): Effect[] {
    return rows.filter(isTold).map((row) => toEffect(this.#deps, row));
  }

  /** What the thread and its branches did outside of the environment, oldest first. */
  effects(): Effect[] {
    const { thread } = this;
    return thread === undefined ? [] : this.#told(this.#deps.catalog.familyEffects(thread.id));
  }

  /** A plain id means one checkpoint in a thread; any other of the same number is named with its branch (F-27). */
  #namer(thread: ThreadRow | undefined): (row: CheckpointRow) => string {
    const { catalog } = this.#deps;
    if (thread === undefined || !catalog.hasFamily(thread.id)) return checkpointId;
    return (row) =>
      catalog.checkpointBySeq(thread.id, row.seq)?.id === row.id
        ? checkpointId(row)
        : `${branchId(row.branch ?? 0)}/${checkpointId(row)}`;
  }

  /** As `list_checkpoints` gives it to the model: without the steps between its decisions, to which it cannot return. */
  text(): string {
    const all = this.list(true).filter((one) => one.active || !one.id.includes("/"));
    const children = new Map<string | null, Checkpoint[]>();
    for (const one of all) children.set(one.parent, [...(children.get(one.parent) ?? []), one]);
    const listed = (one: Checkpoint): ListedCheckpoint => {
      const next = (children.get(one.id) ?? []).toSorted((a, b) => Number(isDecided(a)) - Number(isDecided(b)));
      return { checkpoint: one, next: next.findLast((child) => child.active) ?? next.at(-1) ?? null };
    };
    const newestFirst = (list: readonly Checkpoint[]): ListedCheckpoint[] =>
      list.filter(isDecided).reverse().map(listed);
    return maskSecrets(listText(newestFirst(this.list(false)), newestFirst(all.filter((one) => !one.active))));
  }

  /** True when an adapter names this thread's boundaries: its framework must be given a context that it did not restore itself. */
  isDriven(thread: ThreadRow): boolean {
    return this.#deps.catalog.lineage(thread.head).some((row) => row.anchor !== null);
  }
}

const isDecided = ({ kind }: Checkpoint): boolean => kind !== "step";

function withInherited(family: readonly CheckpointRow[], lineage: readonly CheckpointRow[]): CheckpointRow[] {
  const ids = new Set(family.map((row) => row.id));
  const inherited = lineage.filter((row) => !ids.has(row.id));
  return inherited.length === 0 ? [...family] : [...family, ...inherited].sort((a, b) => a.id - b.id);
}
