// The environment room's face: what the tools can change, behind one interface that every implementation passes the conformance suite for.

/** What an environment can bring back and how. Differences are data; callers never ask for a name. */
export interface Capabilities {
  /** Files are captured and restored. */
  readonly files: boolean;
  /** Live processes are captured and restored. */
  readonly processes: boolean;
  /** What `exec` leaves running in the background is ended by a restore to a moment before it, and started again, without its memory, or named where it ran then. */
  readonly programs?: boolean;
  /** `fork` works. */
  readonly fork: boolean;
  /** A restore keeps the handle: the caller's paths and connections stay valid. */
  readonly inPlace: boolean;
  /** Everything inside stands still while it is captured. */
  readonly freeze: boolean;
  /** Memory of processes is part of the image. */
  readonly memory: boolean;
  /** A line that is given to `exec` goes on in the shell of the last one: its folder, variables, functions and jobs are there. */
  readonly shell?: boolean;
  /** What a snapshot of files lacks on this machine, in words ("extended attributes"); empty when nothing. */
  readonly lacks: readonly string[];
}

/**
 * The environment half of a checkpoint: which stored file state and which stored process state describe it.
 * The two strings are the environment's own names; equal names mean equal states.
 */
export interface Manifest {
  readonly files: string | null;
  readonly processes: string | null;
}

/** Net effect on files between two states. Paths are relative to the workspace, in display form (see docs/format.md F-14). */
export interface FileChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Content differs. */
  readonly changed: readonly string[];
  /** Only metadata differs (mode, owner, times, attributes). */
  readonly mode: readonly string[];
  /** The kind of entry differs (file, directory, symlink, …). */
  readonly type: readonly string[];
  /** Certain renames: the same content and time disappeared from one path and appeared at exactly one other. */
  readonly renamed: readonly { readonly from: string; readonly to: string }[];
}

/** A path that the environment could not capture or restore, and why. */
export interface Problem {
  readonly path: string;
  readonly reason: string;
}

export interface Captured {
  readonly manifest: Manifest;
  /** Entries that this state does not fully hold (unreadable, changing while read, socket). */
  readonly problems: readonly Problem[];
  /** Bytes written to the store for this capture. */
  readonly bytes: number;
  /** Milliseconds from the call until captured. */
  readonly captureMs: number;
}

/** A capture under way. Both promises may reject with a RewindError; neither is ever left pending. */
export interface Capture {
  /** Resolves when the state is fixed: the agent may act again and a restore works while this host lives. */
  readonly captured: Promise<Captured>;
  /** Resolves when the state is on disk in order and survives a power loss. Never before `captured`. */
  readonly durable: Promise<void>;
}

export interface CaptureOptions {
  readonly signal?: AbortSignal;
  /** What makes the state durable waits for it: others share the disk. Never rejects. */
  readonly mayPersist?: Promise<void>;
  /** The caller only asks whose changes of files come next: where the files are still those of this state, it MAY be the answer, whatever processes did since. */
  readonly unlessFilesDiffer?: Manifest;
}

export interface RestoreOptions {
  /** Display-form paths that keep their present state. */
  readonly keep?: ReadonlySet<string>;
  /**
   * The state that the caller has just captured here: it spares another look at everything. What is changed after that capture is in no state that anybody can
   * return to, and is not overwritten.
   */
  readonly since?: Manifest;
  /** Display-form paths that alone go back, a directory with all below it; everything else keeps its present state. "" is the root. */
  readonly paths?: ReadonlySet<string>;
  /** Says what would be restored and what not, and touches nothing. */
  readonly dryRun?: boolean;
  /** "keep": programs that run are left as they are, and none is started. For environments that cannot bring back their memory. */
  readonly programs?: "keep";
  readonly signal?: AbortSignal;
}

export interface ForkOptions {
  /** One directory for each, not there yet or empty; without it the environment chooses places of its own. */
  readonly into?: readonly string[];
  /** Called when one is complete. */
  readonly onMade?: (done: number) => void;
}

/** What `fork` made. */
export interface ForkedEnvironment extends Environment {
  /** Differs from the manifest, and why. */
  readonly notRestored: readonly Problem[];
  /** Removes it with everything in it. */
  discard(): Promise<void>;
}

export interface Restored {
  /** Counts the restores of this environment; a caller that cached a handle compares it. */
  readonly generation: number;
  /** The new handle where the restore could not happen in place. */
  readonly moved?: string;
  /** What came back: what was made, changed and removed to get there. */
  readonly restored: FileChanges;
  /** What stays different from the manifest, and why. A program is named as "process 12 (node)". */
  readonly notRestored: readonly Problem[];
  /** Programs that `exec` had left running since and that were ended, as "process 12 (node) on port 8000". */
  readonly stopped?: readonly string[];
}

export interface ExecOptions {
  /** Milliseconds until the whole process group is killed; default none. */
  readonly timeoutMs?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Relative to the workspace. */
  readonly cwd?: string;
  readonly input?: string | Uint8Array;
  readonly signal?: AbortSignal;
  /** Bytes kept of each stream; what is beyond is dropped and `truncated` set. Default 10 MiB. */
  readonly maxBytes?: number;
  /** Which shell a line goes on in, where `capabilities.shell`: any name. Default "main". A line with `cwd` or `env`, or for a shell that is busy, has one of its own. */
  readonly shell?: string;
  /** Called with what the command writes, as it comes. */
  readonly onOutput?: (stream: "stdout" | "stderr", bytes: Uint8Array) => void;
}

export interface ExecResult {
  /** null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  /** Where an environment keeps what was cut off: files with all of it. */
  readonly full?: { readonly stdout: string; readonly stderr: string };
}

export interface DirectoryEntry {
  readonly name: string;
  readonly type: "file" | "directory" | "symlink" | "other";
}

/** A state as a snapshot of a directory (docs/format.md, Files) among the store's objects. */
export interface PortableFiles {
  /** The snapshot's name. */
  readonly name: string;
  /** What of the state it does not hold, and why. */
  readonly problems: readonly Problem[];
}

export interface PortableFile {
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** All of them, in pieces of at most so many. */
  read(pieceSize: number): AsyncIterable<Uint8Array>;
}

/** What a bundle needs of an environment whose states lie outside of the store's objects. */
export interface Portable {
  /** No state is given up until the result is called. */
  hold(): () => void;
  /** @param name `manifest.files` */
  files(name: string): Promise<PortableFiles>;
  /** @param name `manifest.processes`. What is told of the image beside its files: JSON. */
  imageAbout(name: string): unknown;
  /** The files of the image, by their names, which need no other image. */
  imageFiles(name: string): Promise<readonly PortableFile[]>;
  /** Files that the processes of an image have open or mapped, and that no state holds: they must be the same where the processes go on. */
  programs(name: string): Promise<readonly Program[]>;
  /** The workspace below everything that was changed. */
  base(): Promise<PortableFiles>;
  /** JSON: how it is opened again. */
  readonly opened: {
    readonly workspace: string;
    readonly overlays: readonly { path: string; name: string }[];
    readonly options: object;
  };
}

export interface Program {
  /** Absolute, inside. */
  readonly path: string;
  readonly size: number;
  /** SHA-256 in hex. */
  readonly digest: string;
}

/** A place elsewhere to which something inside has connected. */
export interface Contact {
  /** IPv4 or IPv6, in its shortest form. */
  readonly address: string;
  readonly port: number;
}

/** Can this kind of environment run here? Three answers; asked before the first effect. */
export interface ProbeResult {
  readonly status: "available" | "unsupported" | "inconclusive";
  readonly reason: string;
}

export interface ApplyOptions {
  /** Only these and what is below them. Default: the workspace, and what else the environment keeps from the host. */
  readonly paths?: readonly string[];
  /** What both changed is taken from the environment as well. Default: it is named, and left as it is on the host. */
  readonly overwrite?: boolean;
  readonly dryRun?: boolean;
}

export interface Applied {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** Changed here and on the host since the environment began; left as they are on the host. */
  readonly conflicts: readonly string[];
  /** What no folder of the host can take over, and why. */
  readonly notApplied: readonly Problem[];
}

/**
 * Implementer's contract.
 *
 * - One caller at a time for `capture` and `restore`; the coordinator sees to that. `exec`, `readFile`, `writeFile` and `list` may
 *   run beside each other.
 * - `capture` MUST NOT change anything that the tools can see. A state that cannot be stored MUST reject `captured`; it is never
 *   reported as an empty state. Two captures without a change between them MUST give equal manifests.
 * - `restore` MUST be idempotent: killed at any point and called again with the same manifest it ends in the same state. It MUST
 *   check that everything it needs is there before it touches anything, and reject with the environment unchanged if not.
 *   After it, `capture` gives the restored manifest again, but for `keep`, `notRestored` and what `paths` leaves out. A path of `paths` that
 *   neither state has MUST be refused with BAD_ARGUMENT before anything is touched.
 * - With `since`, what was changed after that state MUST NOT be lost: it is left as it is, and named in `notRestored` where the manifest wants something else,
 *   or it stays behind an older handle. Where processes are captured, the environment's own are no such writers: what they do until the restore ends with them.
 * - With `capabilities.programs`, a restore ends what `exec` has left running since that state, before it touches files, unless `programs` says "keep" or `paths` is given; of what ran
 *   then and does not run as it did, each is named in `notRestored`. What `exec` did not start MUST NOT be touched.
 * - `settle` ends the commands that `exec` still runs and resolves when nothing of them writes any more: what they write after a restore would
 *   belong to no state.
 * - `fork` gives environments that are equal to the manifest and independent: a write in one is seen in no other and not in this one. If one cannot
 *   be made, none is left.
 * - A manifest stays restorable after `close` and in another process, unless `durable` was not reached before a power loss.
 * - Nothing outside the environment is ever read or written through a link inside it.
 * - `close` ends what the implementation started for itself; it never destroys captured state.
 */
export interface Environment {
  /** "directory", or the implementer's own name. */
  readonly kind: string;
  readonly capabilities: Capabilities;
  probe(): Promise<ProbeResult>;
  capture(options?: CaptureOptions): Capture;
  /**
   * Whether anything differs from a state that was captured here, where that is cheaper to tell than to capture. MUST be "none" only where it is certain, whoever
   * may have changed something; "unknown" in doubt. Not called beside `capture` and `restore`.
   */
  changed?(since: Manifest): Promise<"none" | "files" | "processes" | "both" | "unknown">;
  /** Where this is seen: the places outside of the environment to which what runs inside has connected since the last call. What it did there no restore takes back. */
  contacts?(): readonly Contact[];
  restore(manifest: Manifest, options?: RestoreOptions): Promise<Restored>;
  /** What differs between two states that were captured here. */
  diff(from: Manifest, to: Manifest): Promise<FileChanges>;
  /** N independent environments that start from the manifest. Rejects with NOT_AVAILABLE unless `capabilities.fork`. */
  fork?(manifest: Manifest, count: number, options?: ForkOptions): Promise<ForkedEnvironment[]>;
  /** Where it is missing, commands must have ended before a restore. */
  settle?(): Promise<void>;
  exec(command: string | readonly string[], options?: ExecOptions): Promise<ExecResult>;
  readFile(path: string): Promise<Uint8Array>;
  writeFile(path: string, data: string | Uint8Array): Promise<void>;
  list(path: string): Promise<DirectoryEntry[]>;
  /**
   * Called once, when the workspace was opened and what a killed process left half done is finished: an environment that does not outlive its owner begins then, with
   * the newest pair that is stored, or as it was closed. What was changed behind that pair and goes with it MUST be handed to `keep` before anything is touched.
   * @returns true where it begins with that pair: what was done behind it is gone
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: environments that never go back say nothing
  resume?(newest: Manifest | null, keep?: (found: Captured) => void): Promise<boolean | void>;
  /**
   * Brings what was made here back to the host's folders, where the environment keeps its changes from them. States that were captured before MUST stay as they were.
   */
  apply?(options?: ApplyOptions): Promise<Applied>;
  /** Gives up stored states that nobody needs any more, where they lie outside of the store's objects. */
  forget?(isNeeded: (half: keyof Manifest, name: string) => boolean): Promise<void>;
  /** Where it is missing, `manifest.files` names a snapshot of a directory among the store's objects, or there are no bundles of it. */
  readonly portable?: Portable;
  /** Absolute path of the workspace as commands inside see it, where that is another one than `path("")`. */
  readonly root?: string;
  /** The path by which a process of the host reaches `path`, or null where it cannot. */
  path(path: string): string | null;
  /** Objects that the manifest needs and that are missing or damaged; [] when sound. */
  verify(manifest: Manifest): Promise<Problem[]>;
  close(): Promise<void>;
}
