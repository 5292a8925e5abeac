// Reads in CRIU's log what it refused, and says it in words for a person and a model.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Problem } from "../../environment.ts";
import { processName } from "../../processes/process-name.ts";
import { outwardUnixSockets } from "./connections.ts";
import { type LogLine, readLog } from "./log.ts";

type Words = (...groups: string[]) => string;

/** Errors of CRIU that have a cause in what a process does. A group named `pid` says which process. */
const causes: readonly (readonly [pattern: RegExp, words: Words])[] = [
  [/External socket is used|name-less external socket/, () => outsideSocket],
  [/Unix socket \d+ with(?:out| unreachable) peer|Dangling connection/, () => outsideSocket],
  [/Unable to+ cut (\S+) from (\S+)/, (name) => `its Unix socket was bound as ${name}, and renamed`],
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

/** Why one call failed; [] where its log does not say. `proc` is the host path of the sandbox's /proc. */
export async function refusals(images: string, log: string, proc?: string): Promise<Problem[]> {
  const errors = (await readLog(join(images, log))).filter(
    ({ level, text }) => level === "error" && !harmless.test(text),
  );
  for (const [at, { text }] of errors.entries()) {
    for (const [pattern, words] of causes) {
      const match = pattern.exec(text);
      if (match === null) continue;
      const reason = words(...match.slice(1));
      // Often found when all processes have been looked at: then the log does not say whose it is.
      const owners = reason === outsideSocket ? await outwardUnixSockets(images) : [];
      if (owners.length > 0) return owners.map((path) => ({ path, reason }));
      const pid = match.groups?.pid ?? match.groups?.pid2 ?? speaker(errors, at);
      return [{ path: await processName(pid, proc), reason }];
    }
  }
  const [first] = errors;
  if (first === undefined) return [];
  return [{ path: await processName(speaker(errors, 0), proc), reason: `CRIU says: ${first.text}` }];
}

/** What a dump that succeeded has left out. */
export async function losses(log: string): Promise<Problem[]> {
  const warnings = (await readLog(log)).filter(({ level }) => level === "warning");
  return warnings.flatMap(({ text }) =>
    /(?:Read|Write) queue (?:is dropped|of the \S+ socket)/.test(text)
      ? [{ path: "a UDP socket", reason: "what has arrived or is to be sent and was not yet taken is left out" }]
      : [],
  );
}

/** What fails in a process is followed by what fails with it, down to a line that names the process. */
const speaker = (errors: readonly LogLine[], from: number): string | null =>
  errors.slice(from).find(({ pid }) => pid !== null)?.pid ?? null;
