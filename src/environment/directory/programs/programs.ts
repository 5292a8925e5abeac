// The programs of a directory environment: what `exec` leaves running is recorded at each capture, and ended or started again by a restore.

import type { Objects } from "../../../store/objects.ts";
import type { Problem } from "../../environment.ts";
import { nameOf, relaunched } from "../../processes/start-again.ts";
import { endProcesses } from "./end.ts";
import { decideFate, type Fate, foretold, startAll } from "./fate.ts";
import { markedVariables } from "./mark.ts";
import type { ProgramPolicy } from "./policy.ts";
import { openSeeing } from "./see.ts";
import { encodeTable, readTable } from "./table.ts";
import { type LiveRun, ProgramTracker, type TrackedCommand } from "./tracker.ts";

export interface ProgramsPlace {
  readonly environment: string;
  /** Where notes of runs lie. */
  readonly folder: string;
  readonly objects: Objects;
  /** undefined: what the recorder of a checkpoint wanted, else "relaunch". */
  readonly policy: ProgramPolicy | undefined;
}

export interface CapturedPrograms {
  readonly name: string | null;
  readonly problems: readonly Problem[];
  readonly bytes: number;
}

/** What became of programs, or would. */
export interface ProgramsRestored {
  /** Those that were started since, and were ended. */
  readonly stopped: readonly string[];
  readonly notRestored: readonly Problem[];
}

export class Programs {
  readonly #place: ProgramsPlace;
  readonly #tracker: ProgramTracker;
  /** Another look must not take for over what one of them has just begun. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor(place: ProgramsPlace) {
    this.#place = place;
    this.#tracker = new ProgramTracker(place.environment, place.folder, openSeeing());
  }

  begin(): TrackedCommand {
    return this.#tracker.begin();
  }

  /** False where no command can have left anything. */
  mayRun(): boolean {
    return this.#tracker.mayRun();
  }

  /** Within a use of the store. */
  async capture(): Promise<CapturedPrograms> {
    const live = await this.#look();
    const policy = this.#place.policy ?? "relaunch";
    const bytes = encodeTable(
      this.#place.environment,
      policy,
      live.map(({ run }) => run),
    );
    if (bytes === null) return { name: null, problems: [], bytes: 0 };
    const batch = this.#place.objects.batch();
    try {
      const name = batch.put(bytes).toString("hex");
      return { name, problems: foretold(live, policy), bytes: await batch.commit() };
    } catch (error) {
      batch.discard();
      throw error;
    }
  }

  /** Touches nothing. @throws STORE_CORRUPT, NOT_RESTORABLE */
  async decide(name: string | null): Promise<Fate> {
    const { environment, objects, policy } = this.#place;
    const table = name === null ? null : readTable(objects, name);
    return decideFate(await this.#look(), table, environment, policy ?? table?.policy ?? "relaunch", (one) =>
      this.#namesOf(one),
    );
  }

  /** What `end` and `start` would give. */
  foreseen(fate: Fate): ProgramsRestored {
    const again = fate.start.map(({ program }) => ({ path: nameOf(program), reason: relaunched }));
    return { stopped: this.#stopped(fate), notRestored: [...fate.problems, ...again] };
  }

  /** Files that those which are to be ended have open for writing. */
  writtenBy({ end }: Fate): string[] {
    return this.#tracker.see.writtenBy(end.flatMap(({ processes }) => processes.map(({ pid }) => pid)));
  }

  async end(fate: Fate): Promise<ProgramsRestored> {
    const stopped = this.#stopped(fate);
    const ids = new Set(fate.end.map(({ run }) => run.id));
    if (ids.size === 0) return { stopped, notRestored: fate.problems };
    const left = await endProcesses(this.#tracker.see, async () =>
      (await this.#look()).filter(({ run }) => ids.has(run.id)).flatMap(({ processes }) => processes),
    );
    const unended = left.map(({ pid }) => ({
      path: nameOf({ pid, command: this.#tracker.see.describe(pid).command, ports: [] }),
      reason: "could not be ended, though it was started after that moment",
    }));
    return { stopped, notRestored: [...fate.problems, ...unended] };
  }

  start(fate: Fate): Promise<readonly Problem[]> {
    const { environment } = this.#place;
    return startAll(
      fate,
      (run) => markedVariables(environment, run),
      (run, program, pid) => this.#tracker.adopt(run, program, pid),
    );
  }

  #look(): Promise<LiveRun[]> {
    const looked = this.#tail.then(() => this.#tracker.look());
    this.#tail = looked.catch(() => {});
    return looked;
  }

  #namesOf({ run, processes }: LiveRun): string[] {
    return run.programs.map((one) => this.#tracker.nameOf(one, processes));
  }

  #stopped({ end, later }: Fate): string[] {
    return end.filter(({ run }) => later.has(run.id)).flatMap((one) => this.#namesOf(one));
  }
}
