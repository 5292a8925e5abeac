// Reads in CRIU's log what it refused, and says it in words for a person and a model.
import { createReadStream, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Problem } from "../../environment.ts";
import { processName } from "./connections.ts";

type Words = (...groups: string[]) => string;

/** Errors of CRIU that have a cause in what a process does. A group named `pid` says which process. */
const causes: readonly (readonly [pattern: RegExp, words: Words])[] = [
  [/External socket is used|half of stream unix connection|name-less external socket/, () => outsideSocket],
  [/Unix socket \d+ with(?:out| unreachable) peer|Dangling connection/, () => outsideSocket],
  [/In-flight connection/, () => "a connection to it is just being made: try again"],
  [/Can't dump file (\d+) of that type \[\d+\] \((?:\S+ )?(?:anon_inode:)?\[?io_uring\]?\)/, () => "it uses io_uring"],
  [/Can't dump file (\d+) of that type \[(\d+)\] \((\S+) (.*)\)$/, (fd, mode, _, info) => openThing(fd, mode, info)],
  [/Unable to find a tty driver/, () => "it has a terminal device open that does not belong to the sandbox"],
  [/dangling tty|ctty inheritance/, () => "its terminal belongs to a session outside of the sandbox"],
  [/Can't dump that handle|suitable path for handle|lookup a mount by dev/, () => watched],
  [/No records of type (?:13|14|18|19|20|21)|fsnotify/, () => watched],
  [
    /Can't dump ghost file (.+) of (\d+) size/,
    (path, size) => `${path} is deleted, still open, and too large (${size} bytes)`,
  ],
  [/Can't create link remap for (\S+)/, (path) => `${path} is open under a name that is gone`],
  [
    /Can't dump nested (\S+) namespace for (?<pid>\d+)/,
    (kind) => `it runs in a ${namespaces[kind] ?? kind} namespace of its own`,
  ],
  [/Can't dump a pid namespace/, () => "it runs in a PID namespace of its own"],
  [
    /Can't lookup mount=\S+ for fd=(\S+) path=(.*)$/,
    (fd, path) => `its descriptor ${fd} (/${path.replace(/^\//, "")}) comes from a mount outside of the sandbox`,
  ],
  [/A session leader of (?<pid>\d+)/, () => "the leader of its session is outside of the sandbox"],
  [/Unsupported mapping found|non-regular mapping|Strange file mapped/, () => "it maps memory of a device"],
  [
    /Unresolved lock found pid (?<pid>\d+)/,
    () => "it holds a lock on a file that another process outside of the sandbox shares",
  ],
  [/Unsupported proto (\d+) for socket/, (proto) => `it has a socket of a protocol that cannot be dumped (${proto})`],
  [
    /Can't dump (\d+) inet socket|Unknown pair family|Unsupported type \(\d+\) on socket/,
    () => "it has a socket of a kind that cannot be dumped",
  ],
  [/aio rings/, () => "it uses Linux AIO"],
  [/PID (?<pid>\d+) has uprobes/, () => "it is traced with uprobes"],
  [/Unseizable non-zombie (?<pid>\d+)|SEIZE (?<pid2>\d+)/, () => "it is traced by another process, such as a debugger"],
  [
    /File (.+) has bad size (\d+) \(expect (\d+)\)/,
    (path, is, was) => `${shownPath(path)} has ${is} bytes and had ${was} when it was dumped`,
  ],
  [/Can't open file (.+): No such file/, (path) => `${shownPath(path)} is not there`],
  [/bind.*Address already in use/, () => "an address or port that it had is in use"],
  [/Can't fork for (?<pid>\d+): File exists/, () => "another process has its number"],
];

/** CRIU goes on without what it did not get. */
const harmless = /^rlimit: Can't setup RLIMIT_NOFILE/;
const namespaces: Record<string, string> = { pid: "PID", net: "network", mnt: "mount", ipc: "IPC", uts: "UTS" };
const outsideSocket = "it is connected through a Unix socket to a process outside of the sandbox";
const watched = "it watches files with inotify or fanotify in a way that cannot be dumped";
const shownPath = (path: string): string => (path.startsWith("/") ? path : `/${path}`);

/** By the type bits of a mode. */
const deviceKinds = new Map([
  [0o020000, "char"],
  [0o060000, "block"],
]);

function openThing(fd: string, mode: string, info: string): string {
  const kind = deviceKinds.get(Number.parseInt(mode, 8) & 0o170000);
  if (kind !== undefined) return `it has the device ${deviceName(kind, info)} open (descriptor ${fd})`;
  return `its descriptor ${fd} (${info.replace(/^anon_inode:/, "")}) is of a kind that cannot be dumped`;
}

/** `numbers` as "10:229". */
function deviceName(kind: string, numbers: string): string {
  try {
    const name = /^DEVNAME=(.*)$/m.exec(readFileSync(`/sys/dev/${kind}/${numbers}/uevent`, "utf8"))?.[1];
    return name === undefined ? numbers : `/dev/${name}`;
  } catch {
    return numbers;
  }
}

/** What the log says of one failed call; [] where it has no error. */
export async function refusals(log: string): Promise<Problem[]> {
  const last: { process: string; first: Problem | null } = { process: "", first: null };
  const stream = createReadStream(log);
  stream.on("error", () => undefined);
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
      const dumped = /Dumping task \(pid: (\d+) comm: (.*)\)/.exec(line);
      if (dumped !== null) last.process = processName(dumped[1] ?? "", dumped[2] ?? "");
      // While processes are restored each line names the one that says it.
      const [, pid, error] = /^\([\d.]+\) +(\d+)?:? ?.*?Error \([^)]*\): (.*)$/.exec(line) ?? [];
      if (error === undefined || harmless.test(error)) continue;
      const speaker = pid === undefined ? last.process : processName(pid, "");
      for (const [pattern, words] of causes) {
        const match = pattern.exec(error);
        if (match === null) continue;
        const named = match.groups?.pid ?? match.groups?.pid2;
        return [{ path: named === undefined ? speaker : processName(named, ""), reason: words(...match.slice(1)) }];
      }
      last.first ??= { path: speaker, reason: `CRIU says: ${error}` };
    }
  } catch {
    return [];
  } finally {
    stream.destroy();
  }
  return last.first === null ? [] : [last.first];
}
