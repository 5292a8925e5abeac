// A store's objects that keep nothing: what a scan would have written is counted, and its bytes go nowhere.
import { RewindError } from "../errors.ts";
import { type Batch, type Hash, hashOf, type Objects } from "../store/objects.ts";

const nameLength = 32;

export interface CountingObjects extends Objects {
  /** Bytes that would have been written since the last call. */
  take(): number;
}

export function countingObjects(): CountingObjects {
  /** Names of what would be there, as Latin-1. */
  const known = new Set<string>();
  let counted = 0;
  const nothing = (): RewindError =>
    new RewindError("STORE_CORRUPT", "Nothing of this workspace is stored: it is observed.", {
      hint: "Open it to record.",
    });

  function batch(): Batch {
    const names = new Set<string>();
    let bytes = 0;
    const add = (name: string, length: number): void => {
      if (known.has(name) || names.has(name)) return;
      names.add(name);
      bytes += length;
    };
    const leave = (): void => {
      names.clear();
      bytes = 0;
    };
    return {
      put(content) {
        const hash = hashOf(content);
        add(hash.toString("latin1"), content.length);
        return hash;
      },
      reserve(given, lengths) {
        for (let i = 0; i < lengths.length; i++)
          add(given.toString("latin1", i * nameLength, (i + 1) * nameLength), lengths[i] as number);
        // As of objects that are all there: nobody writes them, and no descriptor is used.
        return { fd: -1, offsets: new Float64Array(lengths.length).fill(-1) };
      },
      async commit() {
        for (const name of names) known.add(name);
        const written = bytes;
        counted += written;
        leave();
        return written;
      },
      discard: leave,
    };
  }

  return {
    batch,
    take() {
      const taken = counted;
      counted = 0;
      return taken;
    },
    use: (work) => work(),
    generation: () => 0,
    holds: (hash: Hash) => known.has(hash.toString("latin1")),
    has: (hash: Hash) => known.has(hash.toString("latin1")),
    seal: () => true,
    async sync() {},
    async settled() {},
    get() {
      throw nothing();
    },
    locate: () => undefined,
    check: () => "it is not kept",
    close() {},
  };
}
