// Dumps a tree of processes and brings it back, over a channel to a CRIU that runs inside of the sandbox.
import { join } from "node:path";
import { RewindError } from "../../../errors.ts";
import type { Problem } from "../../environment.ts";
import { outwardTcp } from "./connections.ts";
import type { CriuChannel } from "./criu-channel.ts";
import { pageSize } from "./image-pages.ts";
import { readImage } from "./images.ts";
import { criuRequest, criuResponse, networkLock, requestType, statistics } from "./messages.ts";
import { decode, encode, type Message } from "./protobuf.ts";
import { losses, refusals } from "./refusals.ts";

interface Call {
  /** Host path of the folder that CRIU has as descriptor 9. */
  readonly images: string;
  /** Host path of the sandbox's /proc, for the names of processes. */
  readonly proc?: string;
  /** Milliseconds for the whole call. Default 60,000. */
  readonly timeoutMs?: number;
  /**
   * Whether packets of the tree's own connections are held back meanwhile. Both ends of a connection inside stand still, so nothing is sent but what TCP sends by itself;
   * "nftables" keeps even that away, and leaves its table in the network namespace where CRIU is killed. Default "skip".
   */
  readonly networkLock?: keyof typeof networkLock;
  /**
   * Masters of terminals may be held outside of the tree. A restore makes them anew, and CRIU hands each over on the channel's socket, as a descriptor that comes with the
   * notification "orphan-pts-master". The same for a dump and its restores; default false: then such a terminal is refused.
   */
  readonly outsideMasters?: boolean;
}

export interface DumpRequest extends Call {
  /** Of the tree's root, as CRIU sees it in its own PID namespace. */
  readonly pid: number;
  /** The tree goes on afterwards; else it has ended. */
  readonly leaveRunning: boolean;
  /**
   * Called while the tree stands still and is in the images, with the names that CRIU gives to deleted files in place. The tree goes on only when it has settled; where it
   * rejects, the dump fails with its error, and the tree goes on too.
   */
  readonly onFrozen?: () => Promise<void>;
  /** Path below `images` of an earlier image: pages that did not change since are left there. The memory must have been protected when that one was made or restored. */
  readonly parent?: string;
  /** Where watched files are looked for by their inode, for inotify on file systems without file handles. */
  readonly watchedFolders?: readonly string[];
}

export interface Dumped {
  /** What the images hold, but a restore cannot bring back to work. */
  readonly problems: readonly Problem[];
  /** Milliseconds for which the tree stood still. */
  readonly frozenMs: number;
  /** Of memory in the images. */
  readonly bytes: number;
}

export interface RestoreRequest extends Call {
  /** CRIU waits at each of its steps ("setup-namespaces", "post-restore", "pre-resume", …) until this settles; it gives up where this rejects. */
  readonly onNotify?: (script: string) => Promise<void>;
}

type Options = NonNullable<Message<typeof criuRequest>["opts"]>;
type Response = Message<typeof criuResponse>;

const warnings = 2;
/** Deleted files that are still open are copied into the images up to this size. */
const ghostLimit = 256 << 20;
const ignoreCgroups = 0;
const defaultTimeoutMs = 60_000;

/**
 * The channel has served when this settles, and is closed. @throws RewindError PROCESSES_NOT_CAPTURED with `details.problems`: what CRIU refused; the tree goes on, unless
 * `details.timedOut`.
 */
export async function dumpTree(channel: CriuChannel, request: DumpRequest): Promise<Dumped> {
  let refusal: { readonly error: unknown } | undefined;
  const onNotify = async (script: string): Promise<void> => {
    if (script !== "post-dump") return;
    try {
      await request.onFrozen?.();
    } catch (error) {
      refusal = { error };
      throw error;
    }
  };
  const options = {
    ...common(request),
    pid: request.pid,
    leave_running: request.leaveRunning,
    log_file: "dump.log",
    notify_scripts: true,
    ghost_limit: ghostLimit,
    ...(request.parent === undefined ? {} : { parent_img: request.parent, track_mem: true }),
    ...(request.watchedFolders === undefined ? {} : { irmap_scan_paths: request.watchedFolders }),
  };
  const response = await ask(channel, "dump", options, request, onNotify);
  if (refusal !== undefined) throw refusal.error;
  if (response.success !== true) throw await failure("dump", request, response);
  const { images } = request;
  const [connections, lost, stats] = await Promise.all([
    outwardTcp(images),
    losses(join(images, "dump.log")),
    readImage(statistics, join(images, "stats-dump")),
  ]);
  const { frozen_time = 0, pages_written = 0, shpages_written = 0 } = stats?.[0]?.dump ?? {};
  return {
    problems: [...connections, ...lost],
    frozenMs: frozen_time / 1000,
    bytes: (pages_written + shpages_written) * pageSize,
  };
}

/**
 * The files must be those of the dump's moment, and the numbers of its processes free. The channel is closed when this settles.
 * @throws RewindError PROCESSES_NOT_RESTORED with `details.problems`; then what was restored is gone again
 */
export async function restoreTree(channel: CriuChannel, request: RestoreRequest): Promise<{ readonly pid: number }> {
  const asks = request.onNotify !== undefined || request.outsideMasters === true;
  const options = { ...common(request), log_file: "restore.log", notify_scripts: asks };
  const response = await ask(channel, "restore", options, request, request.onNotify ?? (async () => undefined));
  if (response.success !== true) throw await failure("restore", request, response);
  return { pid: response.restore?.pid ?? 0 };
}

const common = (call: Call): Options => ({
  // Required, and -1 where the path counts: CRIU would look for a descriptor of the process that made the socket, which its PID namespace does not show.
  images_dir_fd: -1,
  images_dir: "/proc/self/fd/9",
  log_level: warnings,
  tcp_established: true,
  tcp_skip_in_flight: true,
  file_locks: true,
  link_remap: true,
  orphan_pts_master: call.outsideMasters ?? false,
  manage_cgroups_mode: ignoreCgroups,
  network_lock: networkLock[call.networkLock ?? "skip"],
});

/** One request, its notifications, and the answer. */
async function ask(
  channel: CriuChannel,
  kind: "dump" | "restore",
  opts: Options,
  { timeoutMs = defaultTimeoutMs }: Call,
  onNotify: (script: string) => Promise<void>,
): Promise<Response> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLate(kind, timeoutMs)), timeoutMs);
  });
  const send = (message: Message<typeof criuRequest>): void => channel.send(encode(criuRequest, message));
  const serve = async (): Promise<Response> => {
    send({ type: requestType[kind], opts });
    for (;;) {
      const bytes = await channel.receive();
      if (bytes === null) return { success: false, cr_errmsg: "it ended without an answer" };
      const response = decode(criuResponse, bytes);
      if (response.type !== requestType.notify) return response;
      const success = await onNotify(response.notify?.script ?? "").then(
        () => true,
        () => false,
      );
      send({ type: requestType.notify, notify_success: success });
    }
  };
  try {
    return await Promise.race([serve(), late]);
  } finally {
    clearTimeout(timer);
    await channel.close();
  }
}

const codes = { dump: "PROCESSES_NOT_CAPTURED", restore: "PROCESSES_NOT_RESTORED" } as const;
const did = { dump: "captured", restore: "restored" } as const;

const tooLate = (kind: "dump" | "restore", timeoutMs: number): RewindError =>
  new RewindError(codes[kind], `CRIU was not done after ${timeoutMs / 1000} s and was ended.`, {
    hint: "The processes may have been left in the middle of it: rewind, or start them anew.",
    details: { problems: [], timedOut: true },
  });

async function failure(kind: "dump" | "restore", { images, proc }: Call, response: Response): Promise<RewindError> {
  const found = await refusals(images, `${kind}.log`, proc);
  const said = response.cr_errmsg?.trim() ?? "";
  const problems =
    found.length > 0 ? found : [{ path: "", reason: said === "" ? "CRIU gives no reason" : `CRIU says: ${said}` }];
  const named = problems.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`)).join("; ");
  return new RewindError(codes[kind], `The processes could not be ${did[kind]}: ${named}.`, {
    hint:
      kind === "dump"
        ? 'End what is named, or let it go (`processes: "relaunch"` or "stop").'
        : "Nothing of the tree runs. Its log lies beside the images.",
    details: { problems, timedOut: false, log: join(images, `${kind}.log`), errno: response.cr_errno ?? 0 },
  });
}
