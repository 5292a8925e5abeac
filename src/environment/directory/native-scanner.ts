// A scanner whose tree lives in the addon and whose work runs on the addon's threads.
import type { Native, NativeScannerHandle } from "../../native.ts";
import { display, fromBytes, join, type RawPath, toBytes } from "./names.ts";
import type { Scan, Scanner, ScannerOptions, ScanRequest, Seen } from "./scanner.ts";

export class NativeScanner implements Scanner {
  readonly #handle: NativeScannerHandle;
  readonly #options: ScannerOptions;

  constructor(native: Native, options: ScannerOptions) {
    this.#handle = new native.Scanner();
    this.#options = options;
  }

  async scan({ posix, batch, signal }: ScanRequest): Promise<Scan> {
    const { stage, excluded, watches } = this.#options;
    /** What a call back threw: the addon knows only that it failed. */
    let thrown: { readonly error: unknown } | undefined;
    const remembering =
      <A extends unknown[], R>(answer: (...given: A) => R) =>
      (...given: A): R | undefined => {
        try {
          return answer(...given);
        } catch (error) {
          thrown ??= { error };
          return undefined;
        }
      };
    const stop = (): void => this.#handle.abort();
    signal?.throwIfAborted();
    const running = this.#handle.scan(
      posix.root,
      toBytes(stage),
      posix.fidelity,
      excluded === null ? 0 : 1,
      watches ? 1 : 0,
      remembering((names, lengths) => batch.reserve(names, lengths)),
      remembering((folder, names) =>
        names.map((name) => excluded?.(join(fromBytes(folder), fromBytes(name))) ?? false),
      ),
      setImmediate,
    );
    signal?.addEventListener("abort", stop);
    try {
      const { snapshot, problems, entries, bytes, trusted, missed } = await running;
      return {
        snapshot,
        problems: problems.map(({ path, reason }) => ({ path: display(fromBytes(path)), reason })),
        entries,
        bytes,
        trusted,
        missed,
      };
    } catch (error) {
      if (thrown !== undefined) throw thrown.error;
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  keep(): void {
    this.#handle.keep();
  }

  lookup(path: RawPath): Seen | undefined {
    return this.#handle.lookup(toBytes(path)) ?? undefined;
  }

  groups(): ReadonlyMap<RawPath, readonly RawPath[]> {
    const groups = this.#handle.groups().map((members) => members.map(fromBytes));
    return new Map(groups.map((members) => [members[0] as RawPath, members]));
  }

  save(file: number, offset: number): Promise<number> {
    return this.#handle.save(file, offset);
  }

  load(image: Uint8Array, unsettledFromNs: bigint | null): Promise<boolean> {
    return this.#handle.load(image, unsettledFromNs);
  }

  forget(): void {
    this.#handle.forget();
  }

  close(): void {
    this.#handle.unwatch();
  }
}
