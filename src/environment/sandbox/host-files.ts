// What somebody changes on the host below a sandbox: seen at its boundaries, and named (HOST_WRITE).
import { existsSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { promisify } from "node:util";
import { constants, deflateRaw, inflateRawSync, type ZlibOptions } from "node:zlib";
import type { Native } from "../../native.ts";
import { replaceFileNow } from "../../store/io.ts";
import type { RawPath } from "../directory/names.ts";
import { inFolder, isBelow, outermost, raw, restBelow } from "./inside.ts";
import { overlayOf } from "./mount-plan.ts";
import { changedStamps, mergedStamps, type Stamps, takeStamps } from "./stamps.ts";
import type { Overlay } from "./view.ts";

/** Of a whole root file system only what tells of its programs and settings: all of /usr takes seconds to look at. */
const systemPaths = ["/etc", "/opt", "/usr/local", "/usr/bin", "/usr/sbin", "/var/lib/dpkg/status", "/var/lib/rpm"];

/** The part of the time that looking may take: at the folders of the system, of all sandboxes of the host together, since they are the same ones. */
const share = 0.05;
/** For so long the number of sandboxes is believed. */
const countedMs = 2_000;
/** A look that takes no longer is waited for at each boundary. */
const shortMs = 5;
/** So long behind a boundary whoever waited for it is left in peace. */
const restMs = 100;

interface Place {
  /** Absolute, inside. */
  readonly at: string;
  /** Host folder below the overlay, and the path below it. */
  readonly lower: string;
  readonly below: RawPath;
  /** Where the overlay lies, inside. */
  readonly overlay: RawPath;
  /** One of the folders that the sandbox is about, not of the system's. */
  readonly isOwn: boolean;
  /** As the sandbox began, and as results were brought back since. */
  base: Stamps | undefined;
  /** Of the last look. */
  stamps: Stamps | undefined;
  /** Of the last look; undefined before the first. */
  tookMs: number | undefined;
  endedAt: number;
  running: Promise<void> | undefined;
}

export interface HostFilesOptions {
  readonly native: Native;
  readonly overlays: readonly Overlay[];
  /** Absolute folders that are looked at wholly. */
  readonly folders: readonly string[];
  /** Absolute; what is below them is not told. */
  readonly hidden: readonly string[];
  /** How many sandboxes look at the system's folders on this host. */
  readonly sandboxes: () => number;
  /** File in which it is kept what was seen, for the next owner. */
  readonly file: string;
}

const deflate: (bytes: Buffer, options: ZlibOptions) => Promise<Buffer> = promisify(deflateRaw);

export class HostFiles {
  readonly #options: HostFilesOptions;
  readonly #places: readonly Place[];
  readonly #hidden: readonly RawPath[];
  #saved: Promise<void> = Promise.resolve();
  readonly #changed = new Set<RawPath>();
  #sandboxes = { number: 1, until: 0 };
  #later: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: HostFilesOptions) {
    this.#options = options;
    this.#hidden = options.hidden.map(raw);
    const kept = readKept(options.file);
    this.#places = outermost([...options.folders, ...systemPaths])
      .map((at) => ({ at, ...overlayOf(options.overlays, at) }))
      .map(({ at, overlay, below }) => ({
        at,
        lower: overlay.lower,
        below: raw(below),
        overlay: raw(overlay.path),
        isOwn: options.folders.includes(at),
        ...(kept.get(at) ?? { base: undefined, stamps: undefined }),
        tookMs: undefined,
        endedAt: 0,
        running: undefined,
      }));
  }

  /**
   * At a boundary: looks again at what is due of the sandbox's own folders. One that is quickly looked at is waited for; what the others show is told at a later boundary.
   */
  async look(): Promise<void> {
    const own = this.#places.filter(({ isOwn }) => isOwn);
    this.#beginDue(own);
    await Promise.all(
      own.map(({ running, tookMs }) => ((tookMs ?? Number.POSITIVE_INFINITY) <= shortMs ? running : undefined)),
    );
  }

  /** Behind a boundary: looks at what is due of everything else, one after the other. What it shows is told at the next one. */
  lookAround(): void {
    clearTimeout(this.#later);
    this.#later = setTimeout(() => void this.#lookAround(), restMs);
    this.#later.unref();
  }

  async #lookAround(): Promise<void> {
    for (const place of this.#places) {
      if (this.#closed) return;
      this.#beginDue([place]);
      await place.running;
    }
  }

  #beginDue(places: readonly Place[]): void {
    const now = performance.now();
    for (const place of places)
      if (place.running === undefined && now >= place.endedAt + this.#restOf(place, now)) this.#begin(place);
  }

  /** Milliseconds behind a look in which there is no other. */
  #restOf({ tookMs = 0, isOwn }: Place, now: number): number {
    if (isOwn || tookMs === 0) return tookMs / share;
    if (now >= this.#sandboxes.until)
      this.#sandboxes = { number: Math.max(1, this.#options.sandboxes()), until: now + countedMs };
    return (tookMs / share) * this.#sandboxes.number;
  }

  /** Something was seen of which `take` has not told yet. */
  get hasMore(): boolean {
    return this.#changed.size > 0;
  }

  /** Paths, absolute inside, that were changed on the host since the last call. */
  take(): RawPath[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** Keeps what was seen for the next owner. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#later);
    await Promise.all(this.#places.map(({ running }) => running));
    await this.#save();
  }

  /** Below the overlay's root: what was changed on the host since the sandbox began, in the folder at `at`. */
  async changedSinceBegin(at: string): Promise<Set<RawPath>> {
    const place = await this.#lookNow(at);
    return new Set(await changedStamps(place.base ?? Buffer.alloc(0), place.stamps ?? Buffer.alloc(0)));
  }

  /** What is on the host at these paths, below the overlay's root, came out of the sandbox. */
  async takeOver(at: string, isTaken: (path: RawPath) => boolean): Promise<void> {
    const told = new Set(this.#changed);
    const place = await this.#lookNow(at);
    place.base = mergedStamps(place.base ?? Buffer.alloc(0), place.stamps ?? Buffer.alloc(0), isTaken);
    for (const path of this.#changed)
      if (!told.has(path) && isTaken(restBelow(path, place.overlay))) this.#changed.delete(path);
    await this.#save();
  }

  async #lookNow(at: string): Promise<Place> {
    const place = this.#places.find((one) => isBelow(at, one.at)) as Place;
    await place.running;
    this.#begin(place);
    await place.running;
    return place;
  }

  #save(): Promise<void> {
    this.#saved = this.#saved.catch(() => {}).then(() => this.#write());
    return this.#saved;
  }

  async #write(): Promise<void> {
    const known = this.#places.filter(({ stamps }) => stamps !== undefined);
    const bytes = await deflate(
      Buffer.concat(known.flatMap(({ at, base, stamps }) => framed(Buffer.from(at), base as Stamps, stamps as Stamps))),
      { level: constants.Z_BEST_SPEED },
    );
    replaceFileNow(this.#options.file, bytes);
  }

  #begin(place: Place): void {
    const start = performance.now();
    // The first look finds nothing in memory: it says nothing of the next ones.
    const isFirst = place.tookMs === undefined;
    place.running = this.#lookAt(place).finally(() => {
      place.endedAt = performance.now();
      place.tookMs = isFirst ? 0 : place.endedAt - start;
      place.running = undefined;
    });
  }

  async #lookAt(place: Place): Promise<void> {
    let seen: Stamps;
    try {
      seen = await takeStamps(this.#options.native, place.lower, place.below);
    } catch {
      // A folder below an overlay that cannot be read at all: what its user sees says more.
      return;
    }
    const before = place.stamps;
    place.stamps = seen;
    if (before === undefined) {
      place.base = seen;
      // Killed later, the next owner must know what the sandbox began with.
      await this.#save().catch(() => {});
      return;
    }
    for (const path of await changedStamps(before, seen)) {
      const inside = inFolder(place.overlay, path);
      if (!this.#hidden.some((one) => isBelow(inside, one))) this.#changed.add(inside);
    }
  }
}

const framed = (...parts: Buffer[]): Buffer[] =>
  parts.flatMap((part) => {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(part.length);
    return [head, part];
  });

function* unframed(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32LE(at);
    if (end > bytes.length) throw new RangeError("cut");
    yield bytes.subarray(at + 4, end);
    at = end;
  }
}

/** Nothing where it cannot be read: it is then as at the first opening. */
function readKept(file: string): Map<string, Pick<Place, "base" | "stamps">> {
  const kept = new Map<string, Pick<Place, "base" | "stamps">>();
  if (!existsSync(file)) return kept;
  try {
    const parts = [...unframed(inflateRawSync(readFileSync(file)))];
    for (let i = 0; i + 2 < parts.length; i += 3)
      kept.set((parts[i] as Buffer).toString(), { base: parts[i + 1], stamps: parts[i + 2] });
    return kept;
  } catch {
    return new Map();
  }
}
