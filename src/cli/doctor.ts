// `doctor`: what this machine can do, and how to get the rest. Looks only; with --clean it removes what killed owners of sandboxes left.
import { closeSync, openSync, statSync } from "node:fs";
import { arch, release, userInfo } from "node:os";
import { sandboxNeeds } from "../environment/sandbox/needs.ts";
import { RewindError, systemCode } from "../errors.ts";
import { probeEbpf } from "../inspector/ebpf/probe.ts";
import { loadNative } from "../native.ts";
import type { Reader } from "../reader.ts";
import { limitMessage, softLimitOf } from "../store/limit.ts";
import type { Survey } from "../store/survey.ts";
import { bytes, plural } from "../text/words.ts";
import { resolveWorkspace } from "../workspace.ts";
import { fileSystemOf, folderBytes, freeBytes } from "./disk.ts";
import { sqliteHint, toFailure } from "./failure.ts";
import { commandLine, type Global } from "./global.ts";
import type { Output } from "./output.ts";
import { refusedPlatform } from "./platform.ts";
import { type Addition, type Problem, type Report, reportLines } from "./report.ts";
import { packageVersion } from "./version.ts";

const oldestNode = 20;
const lowSpace = 1 << 30;
/** How long doctor looks through the packs. */
const surveyMs = 3_000;
const addonHint =
  'Run `npm rebuild agentrewind` (it needs a C++17 compiler, make and Python 3); npm 11 runs the build only where the project\'s package.json has "allowScripts": {"agentrewind": true, "better-sqlite3": true}.';

export async function doctor(global: Global, { clean = false }: { readonly clean?: boolean } = {}): Promise<Output> {
  const problems: Problem[] = [];
  const error = (message: string, hint: string): void => void problems.push({ level: "error", message, hint });
  const warn = (message: string, hint: string): void => void problems.push({ level: "warning", message, hint });

  const [sqlite, sandbox] = await Promise.all([checkSqlite(error), checkSandbox()]);
  const facts = {
    version: packageVersion(),
    node: checkNode(error),
    platform: checkPlatform(error, warn),
    user: { id: process.getuid?.() ?? null, name: userName(), root: process.getuid?.() === 0 },
    sqlite,
    addon: checkAddon(warn),
    ...checkDirectory(global, warn),
    ebpf: probeEbpf(),
    sandbox,
    store: checkStore(global, warn),
    ...(sqlite.available ? await look(global, clean, error, warn) : unknown),
  };
  const report: Report = { ok: problems.every(({ level }) => level !== "error"), ...facts, problems };
  return {
    json: report,
    text: (paint) => reportLines(report, paint),
    ...(report.ok ? {} : { failure: refused(problems) }),
  };
}

const unknown: Addition = { lacks: null, recorded: null, contents: null, orphans: null };

type Say = (message: string, hint: string) => void;

function checkNode(error: Say) {
  const version = process.versions.node;
  const supported = Number.parseInt(version, 10) >= oldestNode;
  if (!supported) error(`Node ${version} is too old.`, `Install Node ${oldestNode} or newer.`);
  return { version, supported };
}

function checkPlatform(error: Say, warn: Say) {
  const name = process.platform;
  const refusal = refusedPlatform();
  if (refusal !== undefined) error(refusal.message, refusal.hint ?? "");
  else if (name !== "linux")
    warn(`${name} is untested.`, "The portable path is used; try it on a copy of your work first.");
  return { name, release: release(), arch: arch(), tested: name === "linux" };
}

function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}

async function checkSqlite(error: Say): Promise<{ available: boolean; reason: string | null }> {
  try {
    const { default: Database } = await import("better-sqlite3");
    new Database(":memory:").close();
    return { available: true, reason: null };
  } catch (cause) {
    const { code, message } = toFailure(cause);
    error(code === "NOT_AVAILABLE" ? message : `better-sqlite3 does not load: ${message}`, sqliteHint);
    return { available: false, reason: message };
  }
}

function checkAddon(warn: Say): { available: boolean; reason: string | null } {
  const loaded = loadNative();
  if (loaded.native !== null) return { available: true, reason: null };
  const hint = process.platform === "linux" ? addonHint : "The portable path is used.";
  warn(`The native addon is not available: ${loaded.reason.replace(/\.$/, "")}.`, hint);
  return { available: false, reason: loaded.reason };
}

function checkDirectory(global: Global, warn: Say): Pick<Report, "workspace" | "watcher"> {
  const workspace = checkWorkspace(global, warn);
  return { workspace, watcher: checkWatcher(workspace.exists ? workspace.path : null) };
}

function checkWatcher(path: string | null): Report["watcher"] {
  const { native } = loadNative();
  if (native === null) return { available: false, reason: "needs the addon" };
  if (path === null) return { available: false, reason: "there is no workspace" };
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    return { available: false, reason: `the workspace cannot be read (${systemCode(error)})` };
  }
  try {
    const reason = native.probeWatch(fd);
    return { available: reason === null, reason };
  } finally {
    closeSync(fd);
  }
}

async function checkSandbox(): Promise<Report["sandbox"]> {
  const needs = await sandboxNeeds();
  return { available: needs.every(({ status }) => status === "available"), needs };
}

function checkWorkspace(global: Global, warn: Say) {
  let path = global.workspace;
  try {
    path = resolveWorkspace(global.workspace, global.store, global.allowBroad, true);
  } catch (cause) {
    const { message, hint } = toFailure(cause);
    warn(message, hint);
  }
  const exists = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  return { path, exists, fileSystem: exists ? fileSystemOf(path) : null };
}

function checkStore(global: Global, warn: Say) {
  const free = freeBytes(global.store);
  if (free !== null && free < lowSpace) {
    warn(
      `Only ${bytes(free)} are free where the store lies.`,
      "Free some space, or put the store elsewhere with --store.",
    );
  }
  return { path: global.store, freeBytes: free };
}

/** What needs SQLite: loaded only now, so that the rest is said also where it is missing. */
async function look(global: Global, clean: boolean, error: Say, warn: Say): Promise<Addition> {
  const { lacksOf } = await import("../reader.ts");
  const { withReader } = await import("./recorded.ts");
  try {
    return await withReader(global, async (reader, workspace) => {
      const exists = statSync(workspace, { throwIfNoEntry: false })?.isDirectory() ?? false;
      const recorded = reader?.recorded;
      const threads = recorded?.threads() ?? [];
      return {
        lacks: exists ? lacksOf(workspace) : null,
        recorded:
          recorded === undefined
            ? null
            : {
                threads: threads.length,
                checkpoints: threads
                  .map((name) => recorded.thread(name).checkpoints({ all: true }).length)
                  .reduce((sum, count) => sum + count, 0),
                held: await recorded.held(),
              },
        contents:
          reader === undefined
            ? null
            : {
                format: reader.format,
                bytes: folderBytes(reader.layout.root),
                workspaces: reader.count("workspace"),
                threads: reader.count("thread"),
                checkpoints: reader.count("checkpoint"),
                packs: await surveyOf(reader),
                softLimit: limitOf(reader, warn),
              },
        orphans: reader === undefined ? null : await orphansIn(global, reader, clean, warn),
      };
    });
  } catch (cause) {
    const { message, hint } = toFailure(cause);
    error(message, hint);
    return unknown;
  }
}

async function orphansIn(global: Global, reader: Reader, clean: boolean, warn: Say): Promise<Addition["orphans"]> {
  const cleaned = clean ? await reader.clean() : { removed: [], left: [] };
  for (const { path, reason } of cleaned.left) warn(`${path} could not be removed: ${reason}.`, "");
  const found = (await reader.orphans()).map(({ path }) => path);
  if (found.length > 0 && !clean) {
    warn(
      `Killed owners of sandboxes left ${plural(found.length, "thing")} on this machine.`,
      `\`${commandLine(global, "doctor --clean")}\` removes them.`,
    );
  }
  return { found, removed: cleaned.removed };
}

async function surveyOf(reader: Reader): Promise<Survey | null> {
  try {
    return await reader.survey(AbortSignal.timeout(surveyMs));
  } catch {
    return null;
  }
}

/** Null where there is none. */
function limitOf(reader: Reader, warn: Say): number | null {
  try {
    const limit = softLimitOf(undefined);
    const used = reader.bytes();
    if (used > limit) warn(limitMessage(reader.layout.root, used, limit), "");
    return limit === Number.POSITIVE_INFINITY ? null : limit;
  } catch (error) {
    const { message, hint } = toFailure(error);
    warn(message, hint);
    return null;
  }
}

function refused(problems: readonly Problem[]): RewindError {
  const errors = problems.filter(({ level }) => level === "error");
  return new RewindError("NOT_AVAILABLE", errors[0]?.message ?? "", { hint: errors[0]?.hint ?? "" });
}
