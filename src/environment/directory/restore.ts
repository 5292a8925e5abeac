// Carries out a restore plan in the order of F-23: everything is staged before anything else is touched.
import { asWriteFailure, RewindError, systemCode } from "../../errors.ts";
import { fault } from "../../faults.ts";
import type { Problem } from "../environment.ts";
import { type Plan, stageFolders } from "./draft.ts";
import { entryType } from "./entry.ts";
import { markedReason } from "./immovable.ts";
import { type Job, type JobFailure, type JobRunner, type Known, operation } from "./job.ts";
import { openFolder } from "./jobs-portable.ts";
import { display, join, parentOf, type RawPath } from "./names.ts";
import type { PackedItem } from "./packed.ts";
import type { Posix, Stat } from "./posix.ts";
import { uncapturedReason } from "./since.ts";

export interface ApplyOptions {
  readonly posix: Posix;
  readonly jobs: JobRunner;
  /** Name of the staging folder in the root. */
  readonly stage: RawPath;
  /** What the tree from which the plan starts knew of a path; undefined where nothing was. */
  readonly known: (path: RawPath) => Known | undefined;
  /** Of that tree: paths of inodes with several names. */
  readonly shared: (path: RawPath) => boolean;
  /** Called when everything is staged, and done before anything else of the workspace is touched. */
  readonly beforeTouching?: () => Promise<unknown>;
}

/** Refusals that concern one path: they are reported, the rest goes on. */
const refusals = new Set([
  "EACCES",
  "EPERM",
  "EBUSY",
  "EROFS",
  "ENOSYS",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENAMETOOLONG",
  "ETXTBSY",
  "EXDEV",
  "EMLINK",
  "ENOTEMPTY",
  "EISDIR",
  "ENOTDIR",
  "EEXIST",
]);

/** Returns what could not be brought back. @throws STORE_CORRUPT and DISK_FULL with nothing touched; RESTORE_FAILED midway */
export async function applyPlan(plan: Plan, options: ApplyOptions): Promise<Problem[]> {
  return new Application(plan, options).run();
}

class Application {
  readonly #plan: Plan;
  readonly #options: ApplyOptions;
  readonly #problems = new Map<RawPath, string>();
  /** A new name of an inode moves its time of change. */
  readonly #linked: ReadonlySet<RawPath>;
  /** Paths that are not there because something was refused, and so nothing can be below them. */
  readonly #missing = new Set<RawPath>();

  constructor(plan: Plan, options: ApplyOptions) {
    this.#plan = plan;
    this.#options = options;
    this.#linked = new Set(plan.links.map(({ first }) => first));
  }

  async run(): Promise<Problem[]> {
    const { posix, stage } = this.#options;
    const staged = this.#plan.moves.size + this.#plan.links.length > 0;
    fault("restore.planned");
    if (posix.stat(stage) !== undefined) await this.#clear();
    if (staged) await this.#stageAll();
    else await this.#options.beforeTouching?.();
    fault("restore.staged");
    try {
      await this.#removeAll();
      await this.#placeAll();
      fault("restore.applied");
      if (staged) await this.#clear();
      fault("restore.cleaned");
      await this.#setAllMetadata();
    } catch (error) {
      throw new RewindError("RESTORE_FAILED", `The restore stopped midway: ${(error as Error).message}.`, {
        hint: "Run the same rewind again: it goes on from here.",
        cause: asWriteFailure(error, "the workspace"),
      });
    }
    return [...this.#problems].map(([path, reason]) => ({ path: display(path), reason }));
  }

  async #stageAll(): Promise<void> {
    const { posix } = this.#options;
    const root = posix.stat("");
    try {
      this.#makeStage();
      for (const level of this.#plan.folders.parentsFirst()) {
        await this.#do(level, ({ path, at }) => ({ operation: operation.makeDirectory, path, at }));
      }
      await this.#do(this.#plan.staged, ({ path, at, entry }) => ({ operation: operation.stage, path, at, entry }));
      await this.#options.beforeTouching?.();
    } catch (error) {
      await this.#clear();
      if (root !== undefined) putRootBack(posix, root);
      throw asWriteFailure(error, "the workspace");
    }
  }

  #makeStage(): void {
    const { posix, stage } = this.#options;
    try {
      posix.makeDirectory(stage);
    } catch (error) {
      if (systemCode(error) === "EACCES" && openFolder(posix, "")) posix.makeDirectory(stage);
      else throw error;
    }
    const count = Math.min(stageFolders, Math.max(this.#plan.moves.size, this.#plan.links.length));
    for (let i = 0; i < count; i++) posix.makeDirectory(join(stage, `${i}`));
  }

  #clear(): Promise<void> {
    const { stage } = this.#options;
    return this.#do([{ path: stage }], ({ path }) => ({ operation: operation.removeTree, path, at: path }));
  }

  async #removeAll(): Promise<void> {
    const { removals, removedFolders } = this.#plan;
    await this.#do(removals, ({ path }) => ({ operation: operation.remove, path, at: path, ...this.#knownOf(path) }));
    for (const level of removedFolders.childrenFirst()) {
      await this.#do(level, ({ path }) => ({ operation: operation.removeDirectory, path, at: path }));
    }
  }

  async #placeAll(): Promise<void> {
    const { moves, links, occupied } = this.#plan;
    const { stage } = this.#options;
    await this.#do(moves, ({ path, at }) =>
      occupied.has(path) || this.#missing.has(path)
        ? undefined
        : { operation: operation.place, path, at: path, from: at, ...this.#knownOf(path) },
    );
    if (this.#missing.size > 0) this.#reportWhatIsBelow();
    await this.#do(links.entries(), ([index, { path, first }]) => {
      if (this.#isMissing(path)) return undefined;
      if (this.#isMissing(first)) {
        this.#report(path, `is a name of ${display(first)}, which could not be restored`);
        return undefined;
      }
      const temporary = `${stage}/${index % stageFolders}/link-${index}`;
      return { operation: operation.link, path, at: path, from: first, temporary, ...this.#knownOf(path) };
    });
  }

  /** After everything else: changing an entry changes the times of its folder. */
  async #setAllMetadata(): Promise<void> {
    for (const level of this.#plan.metadata.childrenFirst()) {
      await this.#do(level, ({ path, entry }) =>
        this.#isMissing(path)
          ? undefined
          : {
              operation: operation.setMetadata,
              path,
              at: path,
              entry,
              ...(entry[0] === entryType.directory ? {} : this.#knownOf(path)),
            },
      );
    }
  }

  #knownOf(path: RawPath): { known: Known | undefined; shared: boolean } {
    const known = this.#options.known(path);
    // A directory is removed before something else is placed there.
    if (known?.type === entryType.directory) return { known: undefined, shared: false };
    return { known, shared: this.#options.shared(path) || this.#linked.has(path) };
  }

  async #do<Item>(items: Iterable<Item>, jobOf: (item: Item) => Job | undefined): Promise<void> {
    function* jobs(): Generator<Job> {
      for (const item of items) {
        const job = jobOf(item);
        if (job !== undefined) yield job;
      }
    }
    await this.#options.jobs.run(jobs(), (job, failure) => this.#failed(job, failure));
  }

  #failed(job: Job, failure: JobFailure): void {
    if (failure.kind === "damaged") throw damaged(job.path, failure);
    const made = job.operation !== operation.remove && job.operation !== operation.removeDirectory;
    if (failure.kind === "moved") {
      this.#report(job.path, uncapturedReason);
    } else if (failure.kind === "immutable") {
      this.#report(job.path, markedReason);
    } else if (failure.kind === "owner") {
      this.#report(job.path, `its owner or group could not be restored (${failure.code})`);
      return;
    } else if (failure.kind === "refused" && job.operation !== operation.removeTree && refusals.has(failure.code)) {
      const stays = job.operation === operation.removeDirectory && failure.code === "ENOTEMPTY";
      this.#report(
        job.path,
        stays ? "stays because it holds something that stays" : `was refused by the system (${failure.code})`,
      );
    } else throw systemError(job.path, failure);
    if (made && job.operation !== operation.setMetadata) this.#missing.add(job.path);
  }

  /** The first reason counts: what follows from it adds nothing. */
  #report(path: RawPath, reason: string): void {
    if (!this.#problems.has(path)) this.#problems.set(path, reason);
  }

  #isMissing(path: RawPath): boolean {
    if (this.#missing.size === 0) return false;
    for (let at = path; at !== ""; at = parentOf(at)) if (this.#missing.has(at)) return true;
    return false;
  }

  #reportWhatIsBelow(): void {
    const report = ({ path }: PackedItem): void => {
      if (!this.#missing.has(path) && this.#isMissing(path)) this.#report(path, "its folder could not be made");
    };
    for (const level of this.#plan.folders.parentsFirst()) for (const item of level) report(item);
    for (const item of this.#plan.staged) report(item);
    for (const { path } of this.#plan.links) {
      if (this.#isMissing(path)) this.#report(path, "its folder could not be made");
    }
  }
}

function putRootBack(posix: Posix, root: Stat): void {
  if (posix.stat("")?.mode !== root.mode) posix.setMode("", root.mode);
  posix.setTime("", root.mtimeNs);
}

function damaged(path: RawPath, { code, syscall, cause }: JobFailure): RewindError {
  const system = code === "" ? "its bytes are damaged" : `its pack cannot be read (${code}, ${syscall})`;
  const reason = cause === undefined ? system : (cause as Error).message;
  return new RewindError(
    "STORE_CORRUPT",
    `The stored content of ${display(path)} cannot be used: ${reason}. Nothing was changed.`,
    {
      hint: "Run `agentrewind verify` to see which checkpoints are affected, and rewind to another one.",
      details: { path: display(path) },
      cause,
    },
  );
}

function systemError(path: RawPath, { code, syscall, cause }: JobFailure): unknown {
  if (cause instanceof Error) return cause;
  return Object.assign(new Error(`${code}: ${syscall} of ${display(path)}`), { code, syscall });
}
