// One life of a sandbox, from its namespaces' beginning to their end: each rewind begins another one on the restored layers.
import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fault } from "../../faults.ts";
import type { Native } from "../../native.ts";
import type { Activity, TreeActivity } from "./activity.ts";
import type { SandboxGroup } from "./cgroup.ts";
import { SandboxCommands } from "./commands.ts";
import type { Keeper, Started } from "./keeper.ts";
import type { CriuChannel, CriuProgram } from "./processes/criu-channel.ts";
import { criuLibrary } from "./program.ts";
import { RunFolder, runLayer } from "./run-folder.ts";
import { closeSettings, type Overlay, prepareLive, viewSteps } from "./view.ts";

/** What all lives of one sandbox share. */
export interface LifePlan {
  readonly keeper: Keeper;
  readonly native: Native;
  readonly group: SandboxGroup;
  /** Host path of the sandbox's program. */
  readonly program: string;
  readonly overlays: readonly Overlay[];
  readonly hide: readonly string[];
  readonly hostname: string;
  readonly network: "host" | "own";
  readonly noNewPrivs: boolean;
  readonly workspace: string;
  readonly criu: { readonly program: CriuProgram; readonly kernelFeatures: string } | undefined;
  /** What a rewind does with processes. */
  readonly processes: "restore" | "relaunch" | "stop";
  /** A dump holds only what was written since the one before, where that can be told. */
  readonly tracksMemory: boolean;
  /** Waiting shells that know what they knew are taken for unchanged, without another image of their memory. */
  readonly judgesShells: boolean;
  /** Tells whether anything can have happened; undefined: it is always looked. */
  readonly activity: Activity | undefined;
  /** Why they do not come back with their memory; "" where they do. */
  readonly whyNoMemory: string;
}

export interface Life {
  readonly live: string;
  /** Host pid of its init. */
  readonly pid: number;
  readonly commands: SandboxCommands;
  /** The image whose pages the kernel tells apart from what was written since: what a dump or a restore left. */
  memory: string | undefined;
  /** What the processes were at their newest image, where that can be told without another one. */
  still: { readonly image: string; readonly key: string } | undefined;
  /** undefined where nothing tells, or not of this life. */
  readonly activity: TreeActivity | undefined;
  /** Raised when it has ended, whoever ended it. */
  readonly over: AbortSignal;
  /** CRIU inside of it; `pid` is its own number there, 0 for any. */
  criu(images: string, pid: number): Promise<CriuChannel>;
  /** Of a life that begins with a restore: to be called when the processes are there, before they run. */
  closeSettings(): Promise<void>;
  end(): Promise<void>;
}

/** Where the tree's root has its number: the first process behind the init. */
export const rootPid = 2;

/** @param fresh without processes: the tree's root is started; else it is to be restored, and new numbers go on behind `lastPid` */
export async function beginLife(plan: LifePlan, live: string, lastPid: number | undefined): Promise<Life> {
  const { keeper, native, group, criu } = plan;
  const fresh = lastPid === undefined;
  const run = join(live, runLayer);
  prepareLive(live, plan.overlays);
  const runFolder = new RunFolder(run, native);
  SandboxCommands.prepare(runFolder);
  if (fresh) placeProgram(plan.program, runFolder);
  group.make();
  fault("life.group-made");
  const steps = viewSteps({
    live,
    overlays: plan.overlays,
    hide: plan.hide,
    hostname: plan.hostname,
    kernelFeatures: criu?.kernelFeatures,
    lastPid,
  });
  const activity = watched(plan);
  const started: Started = await keeper
    .start([
      ...["network", plan.network, "cgroups", group.init, group.tree, group.joined.join("\n")],
      ...["program", fresh ? "/run/agentrewind/program" : "", plan.noNewPrivs ? "none" : "new"],
      ...steps,
      ...(fresh ? closeSettings() : []),
    ])
    .catch((error) => {
      activity?.close();
      throw error;
    });
  fault("life.begun");
  const over = new AbortController();
  // Every command listens.
  setMaxListeners(0, over.signal);
  void started.ended.then(() => over.abort());
  return {
    live,
    pid: started.pid,
    memory: undefined,
    still: undefined,
    activity,
    over: over.signal,
    commands: new SandboxCommands({
      run: runFolder,
      processes: () => group.processes(),
      workspace: plan.workspace,
      over: over.signal,
    }),
    criu(images, pid) {
      if (criu === undefined) throw new TypeError("there is no CRIU");
      const { prefix, command } = criu.program;
      // What restores belongs to the tree with what it restores; what dumps must not be part of what it dumps.
      const restores = !fresh && pid !== 0;
      const library = criuLibrary();
      return keeper.criu({
        init: started.pid,
        images,
        prefix,
        cgroup: restores ? group.tree : group.init,
        joined: restores ? group.joined : [],
        pid,
        library,
        tracks: plan.tracksMemory,
        command: [...command, "swrk", "3"],
      });
    },
    closeSettings: () => keeper.change(started.pid, closeSettings()),
    async end() {
      activity?.close();
      await group.remove();
      await keeper.wait(started.ended);
      fault("life.ended");
    },
  };
}

/** A life of which nobody tells is looked at each time. */
function watched({ activity, group }: LifePlan): TreeActivity | undefined {
  try {
    return activity?.watch(group.tree, group.init);
  } catch {
    return undefined;
  }
}

/** Files that were found to be the program: nobody inside can give another content the same time of change. */
const placed = new Set<string>();

/** What is the same is left alone: a copy would be a change of the state. */
function placeProgram(from: string, run: RunFolder): void {
  const there = run.identity("program");
  if (there !== undefined && placed.has(there)) return;
  const program = readFileSync(from);
  if (!run.part("program", 0, program.length + 1).equals(program)) {
    run.remove("program");
    run.write("program", program, 0o755);
  }
  placed.add(run.identity("program") as string);
}
