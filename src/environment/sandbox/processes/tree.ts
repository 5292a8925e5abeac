// Captures the tree of a sandbox's processes with its files in one moment, and brings both back.
import { release } from "node:os";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { type ErrorCode, isRewindError, RewindError } from "../../../errors.ts";
import { fault } from "../../../faults.ts";
import type { Manifest, Problem } from "../../environment.ts";
import { type ProcessInfo, processInfos } from "../../processes/proc.ts";
import type { ActivityMark } from "../activity.ts";
import type { LayerSnapshot, Layers } from "../layers/layers.ts";
import { beginLife, type Life, type LifePlan, rootPid } from "../life.ts";
import { dumpTree, restoreTree } from "./criu.ts";
import type { ImageAbout, ImageStore } from "./image-store.ts";
import { mostInChain, outlastProcesses, parentPath } from "./memory-chain.ts";
import { changesByItself } from "./moving.ts";
import { foretold, startAgain, type WithoutMemory, wouldStart } from "./relaunch.ts";
import { isSameImage } from "./same-image.ts";
import { isOfOthersFiles, isPassing, type OpenPaths, openPaths, stillState } from "./still.ts";
import { recordProcesses, unkeptSettings } from "./table.ts";
import { watchedFolders } from "./watched-folders.ts";

export interface CaptureRequest {
  readonly life: Life;
  readonly plan: LifePlan;
  readonly layers: Layers;
  readonly images: ImageStore;
  /** The state that may still be the present one. */
  readonly last: Manifest | undefined;
  /** Where an absolute path, inside, lies below the live folder. */
  readonly inLayers: (path: string) => string;
}

interface CapturedTree {
  readonly manifest: Manifest;
  readonly problems: readonly Problem[];
  readonly bytes: number;
  /** Of a moment from which on nothing is in this state that happened later. */
  readonly mark: ActivityMark | undefined;
}

export async function captureTree(request: CaptureRequest): Promise<CapturedTree> {
  const { life, plan } = request;
  if (plan.group.processes().length <= 1) {
    const root = await begunRoot(plan, life);
    if (root === undefined) throw endedWhileCaptured();
    // The root alone holds no state, but its namespace may.
    if (plan.processes !== "restore" || (await plan.native.countIpcObjects(root.pid)) === 0)
      return { mark: life.activity?.mark(), ...(await filesAlone(request, null)) };
  }
  if (plan.processes !== "restore") return withoutMemory(request, plan.processes, plan.whyNoMemory);
  try {
    const unchanged = await withOldImage(request);
    if (unchanged !== undefined) return unchanged;
    return await withMemory(request);
  } catch (error) {
    const refused = refusalOf(error, "PROCESSES_NOT_CAPTURED");
    if (refused === undefined) throw error;
    // What ended with its keeper is no state of the agent's.
    await nextTurn();
    if (request.life.over.aborted || rootOf(plan) === undefined) throw endedWhileCaptured(error);
    const captured = await withoutMemory(request, "relaunch", "not all processes can be captured");
    return { ...captured, problems: [...refused, ...captured.problems] };
  }
}

const rootOf = ({ group }: LifePlan): ProcessInfo | undefined =>
  processInfos(group.processes()).find(({ inside, state }) => inside === rootPid && state !== "Z");

/** How long a life's first process may take to make the second one. */
const beginMs = 5_000;

async function begunRoot(plan: LifePlan, life: Life): Promise<ProcessInfo | undefined> {
  const end = Date.now() + beginMs;
  for (let root = rootOf(plan); ; root = rootOf(plan)) {
    if (root !== undefined || life.over.aborted || Date.now() > end) return root;
    await sleep(1);
  }
}

/** Whether the files are still those of that state, while processes go on. */
export async function haveFilesStayed(request: CaptureRequest, { files, processes }: Manifest): Promise<boolean> {
  return (await filesAlone(request, processes)).manifest.files === files;
}

/** Of processes that wait, or where only its being the same counts. */
async function filesAlone(
  { plan, layers, inLayers }: CaptureRequest,
  processes: string | null,
): Promise<Omit<CapturedTree, "mark">> {
  const open = plan.judgesShells ? openPaths(plan.group.processes(), inLayers, false) : undefined;
  const { name, bytes, problems } = await layers.snapshot(open === undefined ? {} : { besides: isPassing(open) });
  return { manifest: { files: name, processes }, problems, bytes };
}

/** Where the processes are what they were at their newest image, with the same files. */
async function withOldImage(request: CaptureRequest): Promise<CapturedTree | undefined> {
  const { life, plan, layers, images, last, inLayers } = request;
  if (!plan.judgesShells || last?.files == null || last.processes === null) return undefined;
  if (life.still === undefined || life.still.image !== last.processes) return undefined;
  const { begun } = life.commands;
  const mark = life.activity?.mark();
  if ((await stillState(plan, life))?.key !== life.still.key) return undefined;
  const captured = await filesAlone(request, last.processes);
  const { files } = captured.manifest;
  const open = openPaths(plan.group.processes(), inLayers);
  if (files !== last.files && (await isOfOthersFiles(layers.diff(last.files, files as string), open))) return undefined;
  // A command that began meanwhile is in neither half.
  if (life.commands.begun !== begun) return undefined;
  const problems = [...captured.problems, ...unkeptSettings(images.about(last.processes).processes)];
  return { ...captured, problems, mark };
}

const endedWhileCaptured = (cause?: unknown): RewindError =>
  new RewindError("SANDBOX_FAILED", "The sandbox ended while it was captured.", {
    hint: "Open the workspace again: the last pair comes back.",
    cause,
  });

/** How often in a row a dump may fail that would hold only what was written, before no more of them is tried: a kernel or a CRIU that cannot do it fails each time. */
const mostFailures = 2;
const failures = new WeakMap<LifePlan, number>();

/** From the image whose memory is protected, where there is one; whatever speaks against that, a dump of everything does not need it. */
async function withMemory(request: CaptureRequest): Promise<CapturedTree> {
  const { life, plan, images } = request;
  const parent = life.memory;
  const failed = failures.get(plan) ?? 0;
  life.memory = undefined;
  const fits = parent !== undefined && plan.tracksMemory && failed < mostFailures;
  if (!fits || !images.has(parent) || images.chain(parent) >= mostInChain) return dump(request);
  try {
    const captured = await dump(request, parent);
    failures.delete(plan);
    return captured;
  } catch (error) {
    if (!isRewindError(error, "PROCESSES_NOT_CAPTURED") || error.details.timedOut === true || life.over.aborted)
      throw error;
    const captured = await dump(request);
    failures.set(plan, failed + 1);
    return captured;
  }
}

async function dump(request: CaptureRequest, parent?: string): Promise<CapturedTree> {
  const { life, plan, layers, images, last, inLayers } = request;
  const folder = images.begin();
  fault("image.begun");
  try {
    let snapshot: LayerSnapshot | undefined;
    let mark: ActivityMark | undefined;
    let about: Omit<ImageAbout, "files"> | undefined;
    const watched = watchedFolders(processInfos(plan.group.processes()), plan.workspace);
    const still = plan.judgesShells ? await stillState(plan, life) : undefined;
    const { begun } = life.commands;
    let stayed = false;
    const markOfHold = life.activity?.beforeHold();
    const channel = await life.criu(folder, 0);
    const reading = new AbortController();
    const look = (): Described => ({
      about: describe(plan, life, "memory"),
      open: plan.judgesShells ? openPaths(plan.group.processes(), inLayers, false) : undefined,
    });
    const read = whenStill(plan, look, reading.signal).catch(() => undefined);
    const dumped = await dumpTree(channel, {
      images: folder,
      pid: rootPid,
      proc: `/proc/${life.pid}/root/proc`,
      leaveRunning: true,
      ...(parent === undefined ? {} : { parent: parentPath(parent) }),
      ...(watched === undefined ? {} : { watchedFolders: watched }),
      async onFrozen() {
        stayed = life.commands.begun === begun;
        reading.abort();
        const { about: found, open } = (await read) ?? look();
        about = found;
        mark = unlessMoving(plan, markOfHold?.());
        snapshot = await layers.snapshot(open === undefined ? {} : { besides: isPassing(open) });
        fault("image.frozen");
      },
    }).finally(() => reading.abort());
    if (snapshot === undefined || about === undefined) throw new Error("CRIU did not say when the tree stood still");
    const problems = [...snapshot.problems, ...dumped.problems, ...unkeptSettings(about.processes)];
    const known = stayed ? still : undefined;
    const keep = (image: string): void => {
      life.memory = image;
      life.still = known && { image, key: known.key };
    };
    if (last?.processes != null && (await isSameImage(folder, images.path(last.processes)))) {
      await images.discard(folder);
      keep(last.processes);
      return { manifest: { files: snapshot.name, processes: last.processes }, problems, bytes: snapshot.bytes, mark };
    }
    outlastProcesses(folder);
    const processes = images.commit(folder, {
      ...about,
      files: snapshot.name,
      ...(known === undefined ? {} : { still: known }),
    });
    fault("image.committed");
    keep(processes);
    return { manifest: { files: snapshot.name, processes }, problems, bytes: snapshot.bytes + dumped.bytes, mark };
  } catch (error) {
    // What is left of it goes at the next opening.
    await images.discard(folder).catch(() => {});
    throw error;
  }
}

/** Of what changes without a process nobody would tell. */
const unlessMoving = ({ group, network }: LifePlan, mark: ActivityMark | undefined): ActivityMark | undefined =>
  mark === undefined || changesByItself(group.processes(), network) ? undefined : mark;

/** What CRIU has against it; undefined for any other error. */
export function refusalOf(error: unknown, code: ErrorCode): readonly Problem[] | undefined {
  if (!(error instanceof RewindError) || error.code !== code) return undefined;
  const { problems, timedOut } = error.details as { problems?: readonly Problem[]; timedOut?: boolean };
  return timedOut === true ? [{ path: "processes", reason: error.message }] : (problems ?? []);
}

interface Described {
  readonly about: Omit<ImageAbout, "files">;
  /** undefined where every state has all of the commands' folder. */
  readonly open: OpenPaths | undefined;
}

/** Beside CRIU's work: from the moment on in which it holds all of them, none of them changes. undefined where that moment did not come before the signal. */
async function whenStill<T>(plan: LifePlan, look: () => T, signal: AbortSignal): Promise<T | undefined> {
  while (!signal.aborted) {
    if (processInfos(plan.group.processes()).every(({ state }) => isHeld.has(state))) return look();
    await sleep(1);
  }
  return undefined;
}

/** Stopped by a tracer, ended. */
const isHeld: ReadonlySet<string> = new Set(["t", "Z", "X"]);

function describe(plan: LifePlan, life: Life, kind: ImageAbout["kind"]): Omit<ImageAbout, "files"> {
  const infos = processInfos(plan.group.processes());
  const processes = recordProcesses(infos, life.commands.shells());
  return {
    kind,
    lastPid: Math.max(...infos.map(({ inside }) => inside)),
    processes,
    ports: [...new Set(processes.flatMap(({ ports }) => ports))].sort((a, b) => a - b),
    criu: plan.criu?.program.version ?? "",
    kernel: release(),
  };
}

/** The files, and what there is to tell of the processes, in one moment. */
async function withoutMemory(
  { life, plan, layers, images, last }: CaptureRequest,
  how: WithoutMemory,
  why: string,
): Promise<CapturedTree> {
  await plan.group.freeze();
  try {
    const mark = unlessMoving(plan, life.activity?.mark());
    const { name, bytes, problems } = await layers.snapshot();
    const about = { ...describe(plan, life, "table"), files: name };
    const told = [...problems, ...foretold(about.processes, how, why)];
    const before = last?.processes == null ? undefined : images.about(last.processes);
    if (before?.kind === "table" && isDeepStrictEqual(before.processes, about.processes)) {
      return { manifest: { files: name, processes: last?.processes ?? null }, problems: told, bytes, mark };
    }
    const processes = images.commit(images.begin(), about);
    return { manifest: { files: name, processes }, problems: told, bytes, mark };
  } finally {
    plan.group.thaw();
  }
}

/** Numbers that CRIU may need for itself beside those that it restores, and the highest that there are (kernel/pid_max of a small machine). */
const pidRoom = 200;
const highestPid = 32_768;
const lowestFree = 300;
const wakeLooks = 10;

export interface Brought {
  readonly life: Life;
  /** The processes begin to run; until then files may be put in place. Gives those that are not what they were. */
  ready(): Promise<readonly Problem[]>;
}

/** @param refused what CRIU had against it a moment before: they are started again */
export async function bringBack(
  plan: LifePlan,
  live: string,
  images: ImageStore,
  processes: string | null,
  refused?: readonly Problem[],
): Promise<Brought> {
  if (processes === null) return { life: await beginLife(plan, live, undefined), ready: async () => [] };
  const about = images.about(processes);
  if (about.kind === "table" || plan.processes !== "restore" || refused !== undefined) {
    const life = await beginLife(plan, live, undefined);
    const ready = async () => [...(refused ?? []), ...(await startAgain(life, about.processes, withoutMemoryOf(plan)))];
    return { life, ready };
  }
  const after = about.lastPid + 2 * pidRoom < highestPid ? about.lastPid + pidRoom : lowestFree;
  const life = await beginLife(plan, live, after);
  const ready = async (): Promise<[]> => {
    const folder = images.path(processes);
    await restoreTree(await life.criu(folder, after + 1), {
      images: folder,
      async onNotify(script) {
        if (script === "post-restore") await life.closeSettings();
      },
    });
    fault("life.restored");
    life.memory = processes;
    if (about.still !== undefined) {
      life.commands.takeKnown(new Map(about.still.shells));
      life.still = { image: processes, key: about.still.key };
    }
    await untilAsleep(plan);
    return [];
  };
  return { life, ready };
}

/** What slept in a system call when it was dumped enters it again: a dump before that would be of another state. What is busy is not waited for long. */
async function untilAsleep({ group }: LifePlan): Promise<void> {
  for (let looks = 0; looks < wakeLooks; looks++) {
    if (!processInfos(group.processes()).some(({ state }) => state === "R")) return;
    await sleep(1);
  }
}

/** Of an image: what `bringBack` would say. */
export function foreseen(plan: LifePlan, images: ImageStore, processes: string | null): Problem[] {
  if (processes === null) return [];
  const about = images.about(processes);
  return about.kind === "memory" && plan.processes === "restore"
    ? []
    : wouldStart(about.processes, withoutMemoryOf(plan));
}

const withoutMemoryOf = ({ processes }: LifePlan): WithoutMemory => (processes === "stop" ? "stop" : "relaunch");
