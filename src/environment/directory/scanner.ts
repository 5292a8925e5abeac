// Scans of a directory, behind one interface: by the addon's threads (native-scanner.ts), or in JavaScript (portable-scanner.ts).
import type { Batch, Hash } from "../../store/objects.ts";
import type { Problem } from "../environment.ts";
import type { RawPath } from "./names.ts";
import type { Posix } from "./posix.ts";

export interface Scan {
  /** Name of the snapshot that the scan put into the batch. */
  readonly snapshot: Hash;
  readonly problems: readonly Problem[];
  readonly entries: number;
  /** Of all files' contents. */
  readonly bytes: number;
  /** Only what a watcher named was looked at. */
  readonly trusted: boolean;
  /** A watcher may have missed something since the scan before, so that everything was looked at. */
  readonly missed: boolean;
}

export interface ScanRequest {
  readonly posix: Posix;
  readonly batch: Batch;
  readonly signal?: AbortSignal | undefined;
}

/** What a scan saw of an entry. */
export interface Seen {
  readonly type: number;
  readonly ino: bigint;
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  /** Names of the inode, also those that no scan sees. */
  readonly nlink: number;
}

/**
 * Remembers one scan, so that the next reads only what changed. Implementers' contract: equal trees give equal snapshots, whichever way; the event loop is never held
 * for long; nothing that the tools can see changes. One scan at a time.
 */
export interface Scanner {
  /** @throws the signal's reason; system errors of the root and of the store */
  scan(request: ScanRequest): Promise<Scan>;
  /** The batch of the last scan was committed: from now on the next one may rely on what it stored. */
  keep(): void;
  /** Of the kept scan. */
  lookup(path: RawPath): Seen | undefined;
  /** Of the last scan: first member's path to all members' paths, for inodes with several names in the workspace. */
  groups(): ReadonlyMap<RawPath, readonly RawPath[]>;
  /** Writes what the kept scan knows into the file at `offset`, for the next process. Resolves to the bytes written, 0 when it knows nothing. */
  save(file: number, offset: number): Promise<number>;
  /** Takes up what `save` wrote; entries that changed at `unsettledFromNs` or later (null: none) will be read again. False when it is of no use. */
  load(image: Uint8Array, unsettledFromNs: bigint | null): Promise<boolean>;
  /** The next scan reads everything. */
  forget(): void;
  /** Gives back what it holds of the system. */
  close(): void;
}

export interface ScannerOptions {
  /** Absolute path of the directory. */
  readonly root: string;
  /** The staging folder in the root. */
  readonly stage: RawPath;
  readonly excluded: ((path: RawPath) => boolean) | null;
  /** A watcher may say what changed between two scans, where the system has one that sees everything. */
  readonly watches: boolean;
}
