// The log of recorder.c: what reached the disk in which order, and which disks a power cut can leave of it.

export interface Write {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** What lies between two flushes: nothing of it is sure to survive, all before it is. */
export interface Segment {
  readonly writes: readonly Write[];
  /** How many marks of the whole log stand before its end. */
  readonly marks: number;
  /** Whether one of them stands in it. */
  readonly marked: boolean;
}

export interface Log {
  readonly segments: readonly Segment[];
  readonly marks: readonly string[];
}

export function parseLog(bytes: Buffer): Log {
  const segments: Segment[] = [];
  const marks: string[] = [];
  let writes: Write[] = [];
  let marked = false;
  const end = (): void => {
    segments.push({ writes, marks: marks.length, marked });
    writes = [];
    marked = false;
  };
  for (let at = 0; at < bytes.length; ) {
    const kind = bytes.readUInt32LE(at);
    const length = bytes.readUInt32LE(at + 4);
    const offset = Number(bytes.readBigUInt64LE(at + 8));
    const body = bytes.subarray(at + 16, at + 16 + length);
    at += 16 + length;
    if (kind === 1) writes.push({ offset, bytes: body });
    else if (kind === 2) end();
    else {
      marks.push(body.toString("utf8"));
      marked = true;
    }
  }
  end();
  return { segments, marks };
}

/** A disk after a cut in `segment`: of its writes only `kept` got there, each whole or only its first bytes. */
export interface Cut {
  readonly name: string;
  readonly segment: number;
  readonly kept: readonly Write[];
}

export type Random = (limit: number) => number;

export function makeRandom(seed: number): Random {
  let state = seed | 0;
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % limit;
  };
}

const block = 4096;

/** Every cut: none of the segment's writes, all, each one missing, each one alone, every prefix, and random subsets with torn writes. */
export function cutsOf(segments: readonly Segment[], random: Random, subsets: number): Cut[] {
  return segments.flatMap(({ writes }, segment) => {
    const found = new Map<string, Cut>();
    const add = (what: string, kept: readonly Write[]): void => {
      const key = kept
        .map((one) => `${writes.findIndex(({ offset }) => offset === one.offset)}/${one.bytes.length}`)
        .join();
      if (!found.has(key))
        found.set(key, { name: `segment ${segment}, ${what} of ${writes.length} writes`, segment, kept });
    };
    add("none", []);
    add("all", writes);
    for (let i = 0; i < writes.length; i++) {
      add(`all but ${i}`, writes.toSpliced(i, 1));
      add(`only ${i}`, writes.slice(i, i + 1));
      add(`the first ${i}`, writes.slice(0, i));
    }
    for (let round = 0; round < subsets && writes.length > 2; round++) {
      const kept = writes.flatMap((write) => {
        const fate = random(5);
        if (fate < 2) return [];
        if (fate > 2 || write.bytes.length <= block) return [write];
        return [
          {
            offset: write.offset,
            bytes: write.bytes.subarray(0, block * (1 + random(write.bytes.length / block - 1))),
          },
        ];
      });
      add(`random subset ${round}`, kept);
    }
    return [...found.values()];
  });
}

/** At most `limit`: first those that lose everything unflushed right behind a promise, then a random choice. */
export function choose(cuts: readonly Cut[], segments: readonly Segment[], random: Random, limit: number): Cut[] {
  if (cuts.length <= limit) return [...cuts];
  const first = cuts.filter((cut) => cut.kept.length === 0 && (segments[cut.segment] as Segment).marked);
  const rest = cuts.filter((cut) => !first.includes(cut));
  while (first.length < limit) first.push(...rest.splice(random(rest.length), 1));
  return first.sort((a, b) => a.segment - b.segment);
}
