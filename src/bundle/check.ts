// Looks at a whole bundle before anything of it is taken: every digest, every object, every row and what it names (F-71).
import { makeBreather } from "../breathe.ts";
import type { Manifest } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import type { Hash } from "../store/objects.ts";
import { kindBit } from "../store/reach.ts";
import { formatVersion } from "../store/schema.ts";
import { ObjectCheck } from "./check-object.ts";
import { checkThreads, RowCheck } from "./check-rows.ts";
import { bundleFormat, damaged, isObject, pieceSize, recordKind } from "./format.ts";
import { ObjectTable } from "./object-table.ts";
import { type BundleReader, type BundleRecord, parseJson } from "./reader.ts";
import { formatSchema, type Header, headerSchema, imageFileSchema, imageHeadSchema, rowSchema } from "./schema.ts";

/** @throws BUNDLE_DAMAGED, STORE_TOO_NEW */
export async function checkBundle(reader: BundleReader): Promise<Checked> {
  const breathe = makeBreather();
  let check: Check | undefined;
  for (const record of reader.records()) {
    if (check === undefined) check = new Check(headerOf(record));
    else check.add(record);
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  if (check === undefined) throw damaged("it holds nothing");
  return { header: check.header, pair: check.end(), snapshots: check.snapshots, hasLinks: check.hasLinks };
}

export interface Checked {
  readonly header: Header;
  /** What the thread's head stands for; null where nothing can be brought back. */
  readonly pair: Manifest | null;
  /** Names of all of its snapshots. */
  readonly snapshots: readonly string[];
  readonly hasLinks: (list: Hash) => boolean;
}

/** The first record's. */
export function headerOf({ kind, payload }: BundleRecord): Header {
  if (kind !== recordKind.header) throw damaged("it does not say what it holds");
  const { format, store } = parseJson(formatSchema, payload, "header");
  if (format > bundleFormat || store > formatVersion) {
    throw new RewindError(
      "STORE_TOO_NEW",
      `The bundle has format ${format} (store ${store}), this version of AgentRewind reads up to ${bundleFormat} (${formatVersion}).`,
      { hint: "Update AgentRewind; nothing was imported." },
    );
  }
  return parseJson(headerSchema, payload, "header");
}

/** Records come in this order. */
const stage = { objects: 1, images: 2, rows: 3 } as const;

class Check {
  readonly header: Header;
  readonly #met = new ObjectTable();
  readonly #objects = new ObjectCheck(this.#met);
  readonly #rows: RowCheck;
  readonly #images = new Set<string>();
  readonly snapshots: string[] = [];
  readonly hasLinks = (list: Hash): boolean => this.#objects.hasLinks(list);
  #stage = 0;
  /** Of the image's file that comes: how many bytes are missing. */
  #missing = 0;
  #files = new Set<string>();
  #kind: "memory" | "table" | undefined;

  constructor(header: Header) {
    this.header = header;
    this.#rows = new RowCheck(header, this.#met);
  }

  add({ kind, digest, payload }: BundleRecord): void {
    if (isObject(kind)) {
      this.#enter(stage.objects);
      this.#objects.add(kind, digest, payload);
      if (kind === kindBit.snapshot) this.snapshots.push(digest.toString("hex"));
    } else if (kind === recordKind.image || kind === recordKind.imageFile || kind === recordKind.imageBytes) {
      this.#enter(stage.images);
      this.#image(kind, payload);
    } else if (kind === recordKind.row) {
      this.#enter(stage.rows);
      this.#rows.add(parseJson(rowSchema, payload, "row"));
    } else throw damaged(`a record is of no kind that is known (${kind})`);
  }

  end(): Manifest | null {
    this.#requireWhole();
    const { sandbox } = this.header.environment;
    for (const { name } of sandbox?.images ?? [])
      if (!this.#images.has(name)) throw damaged("an image of processes is missing");
    for (const files of sandbox === null ? [] : [sandbox.base, ...sandbox.states.map((one) => one.files)])
      if (this.#met.get(kindBit.snapshot, Buffer.from(files, "hex")) === undefined)
        throw damaged("a state of the files is missing");
    this.#rows.end();
    checkThreads(this.header, this.#rows.counts);
    return this.#rows.pairOf(this.header.threads[0]?.head as number);
  }

  #enter(next: number): void {
    if (next < this.#stage) throw damaged("its parts are not in order");
    this.#stage = next;
    if (next !== stage.images) this.#requireWhole();
  }

  #image(kind: number, payload: Buffer): void {
    if (kind === recordKind.imageBytes) {
      this.#missing -= payload.length;
      if (payload.length === 0 || payload.length > pieceSize || this.#missing < 0)
        throw damaged("an image's file has another length than it says");
      return;
    }
    this.#requireWhole();
    if (kind === recordKind.image) {
      const { name, about } = parseJson(imageHeadSchema, payload, "image");
      const said = this.header.environment.sandbox?.images.find((one) => one.name === name);
      if (said === undefined || said.kind !== about.kind || this.#images.has(name))
        throw damaged("an image of processes is not the one that was announced");
      this.#images.add(name);
      this.#files = new Set();
      this.#kind = about.kind;
      return;
    }
    const { name, size } = parseJson(imageFileSchema, payload, "image");
    if (this.#kind !== "memory" || this.#files.has(name)) throw damaged("an image's file belongs to none");
    this.#files.add(name);
    this.#missing = size;
  }

  #requireWhole(): void {
    if (this.#missing !== 0) throw damaged("an image's file is cut short");
  }
}
