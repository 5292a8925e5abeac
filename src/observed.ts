// The composition root of observing: the workspace as it is, a conversation that goes with its process, and what is told of the turns.
import { randomBytes } from "node:crypto";
import type { Environment } from "./environment/environment.ts";
import type { EnvironmentPlace } from "./environments.ts";
import { openEnvironment } from "./environments.ts";
import { atExit } from "./observe/at-exit.ts";
import { type CountingObjects, countingObjects } from "./observe/counting.ts";
import { observedEnvironment, unknownLook } from "./observe/environment.ts";
import { type ObserveLine, openLines } from "./observe/lines.ts";
import { Observer } from "./observe/observer.ts";
import { type ObserveReport, observeReport } from "./observe/report.ts";
import { openScratch } from "./observe/scratch.ts";
import { observedTable } from "./observe/table.ts";
import { classifier } from "./observe/turns.ts";
import { observedSandbox } from "./observed-sandbox.ts";
import type { Chosen, ObserveOption } from "./open-options.ts";
import { effectRules } from "./session/effect-rules.ts";
import { resolveWorkspace } from "./workspace.ts";

/** Where the processes below `agentrewind observe` write what they observe. */
export const observeVariable = "AGENTREWIND_OBSERVE";

/** What `openRewind` is given besides, where it observes. */
export interface Observing {
  readonly observer: Observer;
  environment(place: EnvironmentPlace): Promise<Environment>;
  report(): ObserveReport;
  /** Tells the report, and removes what was kept beside. */
  end(): void;
  /** It was not opened: there is nothing to tell. */
  giveUp(): void;
}

/** How a workspace is observed; undefined where it is recorded. */
export const observeOption = ({ observe }: Chosen): ObserveOption | undefined =>
  observe ?? (process.env[observeVariable] ? { observe: true } : undefined);

/** @param open opens the workspace with a store of its own in `folder` */
export async function openObserved<T>(
  chosen: Chosen,
  option: ObserveOption,
  open: (folder: string, workspace: string, observing: Observing) => Promise<T>,
): Promise<T> {
  const scratch = openScratch();
  let workspace: string;
  try {
    workspace = resolveWorkspace(chosen.workspace, scratch.folder, chosen.allowBroadWorkspace, true);
  } catch (error) {
    scratch.remove();
    throw error;
  }
  const observing = observingOf(chosen, option, workspace, scratch);
  try {
    return await open(scratch.folder, workspace, observing);
  } catch (error) {
    observing.giveUp();
    throw error;
  }
}

function observingOf(
  chosen: Chosen,
  { report: tell }: ObserveOption,
  workspace: string,
  scratch: ReturnType<typeof openScratch>,
): Observing {
  const folder = process.env[observeVariable];
  const write = folder ? openLines(folder, `${process.pid}-${randomBytes(4).toString("hex")}`) : (_: ObserveLine) => {};
  const objects = countingObjects();
  const observer = new Observer({
    classesOf: classifier(
      effectRules(chosen).declared,
      typeof chosen.capture === "object" ? chosen.capture.tools : undefined,
    ),
    takeBytes: objects.take,
    write,
  });
  const notes: string[] = [];
  const { writeRate } = scratch;
  const report = (): ObserveReport =>
    observeReport({
      source: "turns",
      pauseMs: null,
      workspaces: [workspace],
      turns: observer.turns(),
      baseBytes: 0,
      writeRate,
      notes,
    });
  let told = false;
  const end = (): void => {
    forget();
    scratch.remove();
    if (told) return;
    told = true;
    const found = report();
    const table = observedTable(found);
    if (tell !== undefined) tell(found, table);
    else if (!folder) process.stderr.write(table);
  };
  const forget = atExit(end);
  return {
    observer,
    report,
    end,
    giveUp() {
      told = true;
      end();
    },
    async environment(place) {
      const found = await environmentOf(place, chosen, objects, notes);
      write({ kind: "opened", workspace, writeRate, notes });
      return found;
    },
  };
}

async function environmentOf(
  place: EnvironmentPlace,
  chosen: Chosen,
  objects: CountingObjects,
  notes: string[],
): Promise<Environment> {
  if (typeof chosen.environment === "object") {
    notes.push(
      `Of the environment "${chosen.environment.kind}" only a capture would tell what changed: each turn counts as both.`,
    );
    return observedEnvironment(chosen.environment, unknownLook());
  }
  if (chosen.environment === "sandbox") {
    notes.push(
      "Of a sandbox in which more runs than waiting shells only a dump would tell whether its processes changed: such a turn counts as changed, and the bytes of memory are not among what it would store.",
    );
    return observedSandbox(place.workspace, chosen, objects);
  }
  const inner = await openEnvironment({ ...place, objects }, chosen);
  return observedEnvironment(inner, async (signal) => {
    const { manifest, problems, bytes } = await inner.capture(signal === undefined ? {} : { signal }).captured;
    return { manifest, problems, bytes };
  });
}
