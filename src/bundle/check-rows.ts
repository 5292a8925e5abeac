// Whether a bundle's rows name only what is there, and in the order in which a catalog takes them.
import type { Manifest } from "../environment/environment.ts";
import { kindBit } from "../store/reach.ts";
import { damaged } from "./format.ts";
import type { ObjectTable } from "./object-table.ts";
import type { Header, Row, RowOf } from "./schema.ts";

type Table = Row["table"];
type Counts = Readonly<Record<Table, number>>;
const order: readonly Table[] = ["checkpoint", "rewind", "lesson", "effect", "journal", "named"];
const mostRows = 10_000_000;

export class RowCheck {
  readonly #header: Header;
  readonly #met: ObjectTable;
  readonly #counts: Record<Table, number> = { checkpoint: 0, rewind: 0, lesson: 0, effect: 0, journal: 0, named: 0 };
  /** What must be unique, and what is named before it is there. */
  readonly #seqs: Set<number>[];
  readonly #keys = new Set<string>();
  readonly #states: ReadonlySet<string>;
  readonly #images: ReadonlySet<string>;
  /** By number, from 1: a pair that can be brought back, or the number of the checkpoint before it. */
  readonly #pairs: (Manifest | number | null)[] = [null];
  #latest = 0;
  #lessonNamed = 0;
  #effectNamed = 0;

  constructor(header: Header, met: ObjectTable) {
    this.#header = header;
    this.#met = met;
    this.#seqs = header.threads.map(() => new Set());
    const { sandbox } = header.environment;
    this.#states = new Set(sandbox?.states.map((one) => one.name));
    this.#images = new Set(sandbox?.images.map((one) => one.name));
  }

  get counts(): Counts {
    return this.#counts;
  }

  /** Of a checkpoint, or of the nearest before it that has one. */
  pairOf(number: number): Manifest | null {
    let found: Manifest | number | null | undefined = number;
    while (typeof found === "number") found = this.#pairs[found];
    return found ?? null;
  }

  add(row: Row): void {
    const at = order.indexOf(row.table);
    if (at < this.#latest) throw damaged("its rows are not in order");
    this.#latest = at;
    if (row.table === "checkpoint") this.#checkpoint(row);
    else if (row.table === "rewind") this.#rewind(row);
    else if (row.table === "lesson") {
      requireNamed(row.rewind, this.#counts.rewind);
      for (const one of row.covers ?? []) this.#nameLesson(one);
    } else if (row.table === "effect") this.#effect(row);
    else if (row.table === "journal") {
      this.#nameCheckpoint(row.checkpoint);
      this.#requireObject(kindBit.content, row.value);
      this.#requireNew(`journal ${row.key}`);
    } else {
      this.#nameCheckpoint(row.checkpoint);
      this.#requireNew(`named ${row.name}`);
    }
    if (++this.#counts[row.table] > mostRows) throw damaged("it has more rows than a store takes");
  }

  end(): void {
    if (this.#lessonNamed > this.#counts.lesson || this.#effectNamed > this.#counts.effect)
      throw damaged("a row names one that is missing");
  }

  #checkpoint(row: RowOf<"checkpoint">): void {
    const seqs = this.#seqs[row.thread];
    if (seqs === undefined || seqs.has(row.seq) || row.seq >= (this.#header.threads[row.thread]?.nextSeq ?? 0))
      throw damaged("a checkpoint has a number that it cannot have");
    seqs.add(row.seq);
    for (const one of [row.parent, row.timeline, row.partial?.from ?? null]) this.#nameCheckpoint(one);
    this.#requireObject(kindBit.context, row.context);
    if (row.state === "not-restorable" ? row.files !== null : row.files === null)
      throw damaged("a checkpoint has no state of the files");
    for (const files of [row.files, row.toolsFiles]) if (files !== null) this.#requireState(files);
    for (const processes of [row.processes, row.toolsProcesses])
      if (processes !== null && !this.#images.has(processes))
        throw damaged("a checkpoint names an image that is missing");
    const { files, processes } = row;
    this.#pairs.push(files === null ? row.parent : { files, processes });
    for (const one of row.lessons) this.#nameLesson(one);
    for (const [from, to] of row.effects) this.#effectNamed = Math.max(this.#effectNamed, from, to);
  }

  #rewind(row: RowOf<"rewind">): void {
    for (const one of [row.headBefore, row.leftAt, row.target]) this.#nameCheckpoint(one);
    for (const one of row.result.lessons) this.#nameLesson(one);
    if (row.key !== null) this.#requireNew(`rewind ${row.key}`);
  }

  #effect(row: RowOf<"effect">): void {
    this.#nameCheckpoint(row.checkpoint);
    if (row.replays !== null) requireNamed(row.replays, this.#counts.effect);
    if (row.call !== null) this.#requireNew(`effect ${row.call}`);
  }

  #nameCheckpoint(number: number | null): void {
    if (number !== null) requireNamed(number, this.#counts.checkpoint);
  }

  #nameLesson(number: number): void {
    this.#lessonNamed = Math.max(this.#lessonNamed, number);
  }

  #requireNew(key: string): void {
    if (this.#keys.has(key)) throw damaged("two of its rows have the same name");
    this.#keys.add(key);
  }

  #requireState(name: string): void {
    if (this.#header.environment.sandbox !== null) {
      if (!this.#states.has(name)) throw damaged("a checkpoint names a state that is missing");
    } else this.#requireObject(kindBit.snapshot, name);
  }

  #requireObject(kind: number, name: string): void {
    if (!/^[0-9a-f]{64}$/.test(name) || this.#met.get(kind, Buffer.from(name, "hex")) === undefined)
      throw damaged(`object ${name} is named and missing`);
  }
}

/** What is said of threads before their rows. */
export function checkThreads({ threads, environment }: Header, counts: Counts): void {
  if ((environment.kind === "sandbox") !== (environment.sandbox !== null))
    throw damaged("it does not say what kind of environment it holds");
  for (const [index, { head, forkedFrom, lessons, effectsFrom, place }] of threads.entries()) {
    if ((index === 0) !== (head !== null)) throw damaged("a thread has no head");
    for (const one of [head, forkedFrom, place?.left ?? null]) if (one !== null) requireNamed(one, counts.checkpoint);
    for (const one of lessons) requireNamed(one, counts.lesson);
    if (effectsFrom > counts.effect) throw damaged("a thread names an effect that is missing");
  }
  if (new Set(threads.map((one) => one.name)).size !== threads.length)
    throw damaged("two of its threads have the same name");
}

function requireNamed(number: number, count: number): void {
  if (number > count) throw damaged("a row names one that does not come before");
}
