// A sandbox behind HTTP as a hosted one would be: states are whole copies, and each restore makes a new live directory.
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { dirname, join } from "node:path";
import type { DirectoryEntry, ExecOptions, ExecResult, FileChanges } from "agentrewind";

const base = process.argv[2] as string;
const pointer = join(base, "handle");
const stateOf = (name: string): string => join(base, "states", name);
fs.mkdirSync(stateOf(""), { recursive: true });
if (!fs.existsSync(pointer)) {
  fs.mkdirSync(join(base, "live-1"));
  fs.writeFileSync(pointer, "live-1");
}
const handle = (): string => fs.readFileSync(pointer, "utf8");
const live = (): string => join(base, handle());
const copy = (from: string, to: string): unknown => execFileSync("cp", ["-a", "--reflink=auto", from, to]);
const refuse = (code: string, message: string): Error => Object.assign(new Error(message), { code });

type Entry = readonly [type: string, metadata: string, content: string];

function walk(root: string, path = "", found = new Map<string, Entry>(), inodes = new Map<bigint, string>()) {
  const absolute = join(root, path);
  const stat = fs.lstatSync(absolute, { bigint: true });
  const metadata = `${stat.mode} ${stat.uid} ${stat.gid} ${stat.mtimeNs}`;
  if (stat.isDirectory()) {
    found.set(path, ["directory", metadata, ""]);
    for (const name of fs.readdirSync(absolute).sort()) walk(root, join(path, name), found, inodes);
    return found;
  }
  const first = inodes.get(stat.ino) ?? path;
  inodes.set(stat.ino, first);
  if (stat.isSymbolicLink()) found.set(path, ["symlink", metadata, fs.readlinkSync(absolute)]);
  else if (!stat.isFile()) found.set(path, ["other", metadata, `${stat.rdev}`]);
  else if (first !== path) found.set(path, ["link", metadata, first]);
  else found.set(path, ["file", metadata, createHash("sha256").update(fs.readFileSync(absolute)).digest("hex")]);
  return found;
}

const nameOf = (root: string): string =>
  createHash("sha256")
    .update(JSON.stringify([...walk(root)]))
    .digest("hex");

function compare(from: Map<string, Entry>, to: Map<string, Entry>): FileChanges {
  const paths = [...new Set([...from.keys(), ...to.keys()])].filter((path) => path !== "").sort();
  const both =
    (index: number, equal: boolean) =>
    (path: string): boolean =>
      from.has(path) && to.has(path) && (from.get(path)?.[index] === to.get(path)?.[index]) === equal;
  const added = paths.filter((path) => !from.has(path));
  const removed = paths.filter((path) => !to.has(path));
  const renamed = removed.flatMap((path) => {
    const same = added.filter((one) => to.get(one)?.[0] === "file" && `${to.get(one)}` === `${from.get(path)}`);
    return same.length === 1 ? [{ from: path, to: same[0] as string }] : [];
  });
  return {
    added: added.filter((path) => !renamed.some((one) => one.to === path)),
    removed: removed.filter((path) => !renamed.some((one) => one.from === path)),
    type: paths.filter(both(0, false)),
    changed: paths.filter((path) => both(0, true)(path) && both(2, false)(path)),
    mode: paths.filter((path) => both(0, true)(path) && both(2, true)(path) && both(1, false)(path)),
    renamed,
  };
}

const known = (name: string): boolean =>
  /^[0-9a-f]{64}$/.test(name) && fs.existsSync(stateOf(name)) && nameOf(stateOf(name)) === name;

function locate(path: string): string {
  const real = execFileSync("realpath", ["-m", "--", join(live(), path)], { encoding: "utf8" }).slice(0, -1);
  const inside = real === live() || real.startsWith(`${live()}/`);
  if (path.startsWith("/") || path.split("/").includes("..") || !inside)
    throw refuse("PATH_OUTSIDE", `${path} is outside.`);
  return real;
}

function exec(command: string | string[], options: ExecOptions, request: IncomingMessage): Promise<ExecResult> {
  const [file = "", ...args] = typeof command === "string" ? ["bash", "-c", command] : command;
  const env = { ...process.env, ...options.env };
  const child = spawn(file, args, { cwd: locate(options.cwd ?? ""), env, detached: true });
  const output = { stdout: "", stderr: "" };
  const state = { timedOut: false, truncated: false };
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
  };
  const keep = (stream: "stdout" | "stderr", text: string): void => {
    output[stream] = (output[stream] + text).slice(0, options.maxBytes ?? 1e7);
    state.truncated ||= output[stream].length === options.maxBytes;
  };
  for (const stream of ["stdout", "stderr"] as const)
    child[stream].setEncoding("utf8").on("data", (text) => keep(stream, text));
  const timer =
    options.timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          state.timedOut = true;
          kill();
        }, options.timeoutMs);
  request.socket.once("close", kill);
  child.stdin.on("error", () => {}).end(options.input ?? "");
  return new Promise((resolve, reject) => {
    child.once("error", (error) => reject(refuse("COMMAND_FAILED", error.message)));
    child.once("close", (exitCode, signal) => {
      clearTimeout(timer);
      resolve({ exitCode, signal, ...output, ...state });
    });
  });
}

// biome-ignore lint/suspicious/noExplicitAny: arguments as the client sent them
const calls: Record<string, (argument: any, request: IncomingMessage) => unknown> = {
  capture() {
    const files = nameOf(live());
    if (!known(files)) {
      fs.rmSync(stateOf("new"), { recursive: true, force: true });
      copy(live(), stateOf("new"));
      fs.rmSync(stateOf(files), { recursive: true, force: true });
      fs.renameSync(stateOf("new"), stateOf(files));
      execFileSync("sync", ["-f", base]);
    }
    return files;
  },
  restore({ files, keep }: { files: string; keep: string[] }) {
    if (!known(files)) throw refuse("NOT_RESTORABLE", `There is no whole state ${files}.`);
    const generation = Number(handle().slice(5)) + 1;
    const next = `live-${generation}`;
    const restored = compare(walk(live()), walk(stateOf(files)));
    fs.rmSync(join(base, next), { recursive: true, force: true });
    copy(stateOf(files), join(base, next));
    for (const path of keep) {
      fs.rmSync(join(base, next, path), { recursive: true, force: true });
      fs.mkdirSync(dirname(join(base, next, path)), { recursive: true });
      if (fs.existsSync(join(live(), path))) copy(join(live(), path), join(base, next, path));
    }
    const left = live();
    fs.writeFileSync(`${pointer}.new`, next);
    fs.renameSync(`${pointer}.new`, pointer);
    fs.rmSync(left, { recursive: true });
    const rest = (paths: readonly string[]): string[] => paths.filter((path) => !keep.includes(path));
    const { added, removed, changed, mode, type, renamed } = restored;
    return {
      generation,
      moved: next,
      notRestored: [],
      restored: {
        added: rest(added),
        removed: rest(removed),
        changed: rest(changed),
        mode: rest(mode),
        type: rest(type),
        renamed,
      },
    };
  },
  diff: ({ from, to }) => compare(walk(stateOf(from)), walk(stateOf(to))),
  verify: (files) => (known(files) ? [] : [{ path: files, reason: "missing or damaged" }]),
  exec: ({ command, options }, request) => exec(command, options, request),
  readFile: (path) => fs.readFileSync(locate(path), "base64"),
  writeFile({ path, data }) {
    fs.mkdirSync(dirname(locate(path)), { recursive: true });
    fs.writeFileSync(locate(path), data, "base64");
  },
  list: (path) =>
    fs.readdirSync(locate(path), { withFileTypes: true }).map(
      (one): DirectoryEntry => ({
        name: one.name,
        type: one.isFile() ? "file" : one.isDirectory() ? "directory" : one.isSymbolicLink() ? "symlink" : "other",
      }),
    ),
};

const server = createServer(async (request, response) => {
  let body = "";
  for await (const part of request.setEncoding("utf8")) body += part;
  try {
    if (request.headers.authorization !== process.env.TOKEN) throw refuse("NOT_AVAILABLE", "wrong token");
    response.end(JSON.stringify({ ok: await calls[request.url?.slice(1) ?? ""]?.(JSON.parse(body), request) }));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    response.end(JSON.stringify({ error: { code, message } }));
  }
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify(server.address())));
process.stdin.on("end", () => process.exit()).resume();
