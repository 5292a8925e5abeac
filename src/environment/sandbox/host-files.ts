// What somebody changes on the host below a sandbox: seen at its boundaries, and named (HOST_WRITE).
import { existsSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { promisify } from "node:util";
import { deflateRaw, inflateRawSync } from "node:zlib";
import type { Native } from "../../native.ts";
import { replaceFile, writeAll } from "../../store/io.ts";
import { fromBytes, join, type RawPath } from "../directory/names.ts";
import { changedStamps, type Stamps, takeStamps } from "./stamps.ts";
import type { Overlay } from "./view.ts";

/** Of a whole root file system only what tells of its programs and settings: all of /usr takes seconds to look at. */
const systemPaths = ["/etc", "/opt", "/usr/local", "/usr/bin", "/usr/sbin", "/var/lib/dpkg/status", "/var/lib/rpm"];

/** The part of the time that looking may take. */
const share = 0.05;
/** A look that takes no longer is waited for at each boundary. */
const shortMs = 5;

interface Place {
  /** Absolute, inside. */
  readonly at: string;
  /** Host folder below the overlay, and the path below it. */
  readonly lower: string;
  readonly below: RawPath;
  /** Where the overlay lies, inside. */
  readonly overlay: RawPath;
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
  /** File in which it is kept what was seen, for the next owner. */
  readonly file: string;
}

const raw = (path: string): RawPath => fromBytes(Buffer.from(path));
const deflate = promisify(deflateRaw);
const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);

export class HostFiles {
  readonly #options: HostFilesOptions;
  readonly #places: readonly Place[];
  readonly #hidden: readonly RawPath[];
  readonly #changed = new Set<RawPath>();

  constructor(options: HostFilesOptions) {
    this.#options = options;
    this.#hidden = options.hidden.map(raw);
    const kept = readKept(options.file);
    const wanted = [...options.folders, ...systemPaths];
    this.#places = wanted
      .filter((path, index) => !wanted.some((other, at) => at !== index && other !== path && isBelow(path, other)))
      .filter((path, index, all) => all.indexOf(path) === index)
      .map((at) => ({
        at,
        ...below(options.overlays, at),
        stamps: kept.get(at),
        tookMs: undefined,
        endedAt: 0,
        running: undefined,
      }));
  }

  /**
   * At a boundary: looks again at what is due. A place that is quickly looked at is waited for; the others are told at a later boundary.
   */
  async look(): Promise<void> {
    const now = performance.now();
    for (const place of this.#places)
      if (place.running === undefined && now >= place.endedAt + (place.tookMs ?? 0) / share) this.#begin(place);
    await Promise.all(
      this.#places.map(({ running, tookMs }) =>
        (tookMs ?? Number.POSITIVE_INFINITY) <= shortMs ? running : undefined,
      ),
    );
  }

  /** Paths, absolute inside, that were changed on the host since the last call. */
  take(): RawPath[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** Keeps what was seen for the next owner. */
  async close(): Promise<void> {
    await Promise.all(this.#places.map(({ running }) => running));
    const known = this.#places.filter(({ stamps }) => stamps !== undefined);
    const bytes = await deflate(Buffer.concat(known.flatMap(({ at, stamps }) => framed(at, stamps as Stamps))));
    await replaceFile(this.#options.file, async (fd) => {
      writeAll(fd, bytes, 0);
      return bytes.length;
    });
  }

  #begin(place: Place): void {
    const start = performance.now();
    place.running = this.#lookAt(place).finally(() => {
      place.endedAt = performance.now();
      place.tookMs = place.endedAt - start;
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
    if (before === undefined) return;
    for (const path of await changedStamps(before, seen)) {
      const inside = path === "" ? place.overlay : join(place.overlay === "/" ? "" : place.overlay, path);
      if (!this.#hidden.some((one) => isBelow(inside, one))) this.#changed.add(inside);
    }
  }
}

function below(overlays: readonly Overlay[], at: string): Pick<Place, "lower" | "below" | "overlay"> {
  const overlay = overlays
    .filter(({ path }) => isBelow(at, path))
    .sort((a, b) => b.path.length - a.path.length)[0] as Overlay;
  const rest = at.slice(overlay.path === "/" ? 1 : overlay.path.length + 1);
  return { lower: overlay.lower, below: raw(rest), overlay: raw(overlay.path) };
}

function framed(at: string, stamps: Stamps): Buffer[] {
  const name = Buffer.from(at);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(name.length, 0);
  head.writeUInt32LE(stamps.length, 4);
  return [head, name, stamps];
}

/** Nothing where it cannot be read: it is then as at the first opening. */
function readKept(file: string): Map<string, Stamps> {
  const kept = new Map<string, Stamps>();
  if (!existsSync(file)) return kept;
  try {
    const bytes = inflateRawSync(readFileSync(file));
    for (let at = 0; at < bytes.length; ) {
      const [name, length] = [bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4)];
      const stamps = bytes.subarray(at + 8 + name, at + 8 + name + length);
      if (stamps.length !== length) return new Map();
      kept.set(bytes.toString("utf8", at + 8, at + 8 + name), stamps);
      at += 8 + name + length;
    }
  } catch {
    return new Map();
  }
  return kept;
}
