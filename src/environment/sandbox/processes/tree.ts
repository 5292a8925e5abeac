// Captures the tree of a sandbox's processes with its files in one moment, and brings both back.
import { release } from "node:os";
import type { Manifest, Problem } from "../../environment.ts";
import type { LayerSnapshot, Layers } from "../layers/layers.ts";
import { beginLife, type Life, type LifePlan, rootPid } from "../life.ts";
import { processInfos } from "../proc.ts";
import { dumpTree, restoreTree } from "./criu.ts";
import type { ImageStore } from "./image-store.ts";
import { isSameImage } from "./same-image.ts";
import { listeningPorts, recordProcesses } from "./table.ts";

interface CaptureRequest {
  readonly life: Life;
  readonly plan: LifePlan;
  readonly layers: Layers;
  readonly images: ImageStore;
  /** The state that may still be the present one. */
  readonly last: Manifest | undefined;
}

interface CapturedTree {
  readonly manifest: Manifest;
  readonly problems: readonly Problem[];
  readonly bytes: number;
}

export async function captureTree({ life, plan, layers, images, last }: CaptureRequest): Promise<CapturedTree> {
  const infos = processInfos(plan.group.processes());
  // The root alone holds no state.
  if (infos.length <= 1) {
    const { name, bytes, problems } = await layers.snapshot();
    return { manifest: { files: name, processes: null }, problems, bytes };
  }
  if (plan.criu === undefined) return withoutProcesses(plan, layers);
  const folder = images.begin();
  try {
    let snapshot: LayerSnapshot | undefined;
    let about: ReturnType<typeof describe> | undefined;
    const dumped = await dumpTree(await life.criu(folder, 0), {
      images: folder,
      pid: rootPid,
      leaveRunning: true,
      async onFrozen() {
        snapshot = await layers.snapshot();
        about = describe(plan);
      },
    });
    if (snapshot === undefined || about === undefined) throw new Error("CRIU did not say when the tree stood still");
    const problems = [...snapshot.problems, ...dumped.problems];
    if (last?.processes != null && (await isSameImage(folder, images.path(last.processes)))) {
      await images.discard(folder);
      return { manifest: { files: snapshot.name, processes: last.processes }, problems, bytes: snapshot.bytes };
    }
    const processes = images.commit(folder, { ...about, files: snapshot.name });
    return { manifest: { files: snapshot.name, processes }, problems, bytes: snapshot.bytes + dumped.bytes };
  } catch (error) {
    await images.discard(folder);
    throw error;
  }
}

function describe(plan: LifePlan) {
  const infos = processInfos(plan.group.processes());
  return {
    lastPid: Math.max(...infos.map(({ inside }) => inside)),
    processes: recordProcesses(infos),
    ports: listeningPorts(infos),
    criu: plan.criu?.program.version ?? "",
    kernel: release(),
  };
}

async function withoutProcesses(plan: LifePlan, layers: Layers): Promise<CapturedTree> {
  await plan.group.freeze();
  try {
    const { name, bytes, problems } = await layers.snapshot();
    const lost = recordProcesses(processInfos(plan.group.processes()))
      .filter(({ pid }) => pid !== rootPid)
      .map(({ argv }) => ({
        path: argv.join(" "),
        reason: "a process, which a rewind does not bring back: there is no CRIU",
      }));
    return { manifest: { files: name, processes: null }, problems: [...problems, ...lost], bytes };
  } finally {
    plan.group.thaw();
  }
}

/** Numbers that CRIU may need for itself beside those that it restores, and the highest that there are (kernel/pid_max of a small machine). */
const pidRoom = 200;
const highestPid = 32_768;
const lowestFree = 300;

/** The processes begin to run with `ready`: until then files may be put in place. */
export async function bringBack(
  plan: LifePlan,
  live: string,
  images: ImageStore,
  processes: string | null,
): Promise<{ life: Life; ready: () => Promise<void> }> {
  if (processes === null) return { life: await beginLife(plan, live, undefined), ready: async () => {} };
  const { lastPid } = images.about(processes);
  const after = lastPid + 2 * pidRoom < highestPid ? lastPid + pidRoom : lowestFree;
  const life = await beginLife(plan, live, after);
  const ready = async (): Promise<void> => {
    const folder = images.path(processes);
    await restoreTree(await life.criu(folder, after + 1), {
      images: folder,
      async onNotify(script) {
        if (script === "post-restore") await life.closeSettings();
      },
    });
  };
  return { life, ready };
}
