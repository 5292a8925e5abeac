// Processes as POSIX's ps shows them: without their variables and folders, so what leaves its process group is out of sight.
import { execFile, execFileSync } from "node:child_process";
import { hostname } from "node:os";
import { promisify } from "node:util";
import type { Seeing, SeenProcess } from "./seeing.ts";

const run = promisify(execFile);
const line = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]+\s+\d{4})\s*$/;
const columns = ["pid=", "ppid=", "pgid=", "stat=", "lstart="].flatMap((one) => ["-o", one]);
const options = { env: { ...process.env, LC_ALL: "C", TZ: "UTC" }, encoding: "utf8", maxBuffer: 64 << 20 } as const;

export function seeByPs(): Seeing {
  return {
    // A start is told with its date: another run of the machine has none of these.
    machine: hostname(),
    async list() {
      const { stdout } = await run("ps", ["-A", ...columns], options);
      return { seen: stdout.split("\n").flatMap(parse), whole: true };
    },
    startOf: (pid) => ask(pid, columns).flatMap(parse)[0]?.start,
    describe: (pid) => ({
      command: (ask(pid, ["-o", "comm="])[0] ?? "").trim().split("/").at(-1) as string,
      argv: [],
      cwd: "",
      env: [],
      ids: [process.getuid?.() ?? 0, process.getgid?.() ?? 0, []],
      umask: "0022",
      streams: [],
    }),
    fileOf: () => "",
    portsOf: () => [],
    writtenBy: () => [],
  };
}

function ask(pid: number, what: readonly string[]): string[] {
  try {
    return execFileSync("ps", ["-p", `${pid}`, ...what], { ...options, stdio: ["ignore", "pipe", "ignore"] }).split(
      "\n",
    );
  } catch {
    return [];
  }
}

function parse(text: string): SeenProcess[] {
  const [, pid, parent, group, state = "", start = ""] = line.exec(text) ?? [];
  if (pid === undefined || state.startsWith("Z")) return [];
  const number = Number(pid);
  const told = steady(number, start.replace(/\s+/g, " "));
  return [{ pid: number, parent: Number(parent), group: Number(group), start: told, forked: false, marks: "" }];
}

/** Linux's ps works the start out of the time that has passed, and is a second off now and then. */
const roundingMs = 1_500;
const starts = new Map<number, string>();

function steady(pid: number, start: string): string {
  const before = starts.get(pid);
  if (before !== undefined && Math.abs(Date.parse(before) - Date.parse(start)) < roundingMs) return before;
  starts.set(pid, start);
  return start;
}
