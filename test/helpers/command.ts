// The command as a process of its own, on a workspace and a store that each test gets anew.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { commandFile } from "./library.ts";

export let base: string;
export let workspace: string;
export let store: string;
/** Ended when the test ends. */
export const children: ChildProcess[] = [];

beforeEach(() => {
  base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-cli-"));
  workspace = join(base, "workspace");
  store = join(base, "state", "agentrewind");
  mkdirSync(workspace);
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    // Until it is dead it may write where its folder is removed.
    await ended;
  }
  rmSync(base, { recursive: true, force: true });
});

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ran>;
  readonly stderr: () => string;
}

export interface Setting {
  readonly cwd?: string;
  readonly uid?: number;
  readonly env?: Record<string, string>;
}

export function start(args: readonly string[], { cwd = workspace, uid, env = {} }: Setting = {}): Running {
  const child = spawn(process.execPath, [commandFile, ...args], {
    cwd,
    ...(uid === undefined ? {} : { uid }),
    env: { PATH: process.env.PATH, HOME: base, XDG_STATE_HOME: join(base, "state"), ...quiet, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([status]): Ran => ({ status, stdout, stderr }));
  return { child, ended, stderr: () => stderr };
}

/** Nothing is said of progress, however busy the machine is. */
const quiet = { AGENTREWIND_PROGRESS_AFTER: "600000" };

export const run = (args: readonly string[], setting?: Setting): Promise<Ran> => start(args, setting).ended;

export async function done(...args: string[]): Promise<string> {
  const ran = await run(args);
  expect(ran, ran.stderr).toMatchObject({ status: 0, stderr: "" });
  return ran.stdout;
}

// biome-ignore lint/suspicious/noExplicitAny: the shapes are what the tests check
export const json = async (...args: string[]): Promise<any> => JSON.parse(await done("--json", ...args));

/** Ends with that status and code, told in one line, and the same in JSON; never with a stack. */
export async function refused(
  args: readonly string[],
  status: number,
  code: string,
  setting?: Setting,
): Promise<string> {
  const plain = await run(args, setting);
  expect(plain.status, plain.stdout + plain.stderr).toBe(status);
  expect(plain.stderr).toMatch(/^agentrewind: .+\n$/);
  expect(plain.stderr).not.toMatch(/\n {4}at |node:internal/);
  const asJson = await run(["--json", ...args], setting);
  expect(asJson.status).toBe(status);
  const { error } = JSON.parse(asJson.stderr);
  expect(Object.keys(error)).toEqual(["code", "message", "hint"]);
  expect(error.code).toBe(code);
  expect(error.hint).not.toBe("");
  return plain.stderr;
}

export const put = (name: string, text: string): void => writeFileSync(join(workspace, name), text);
export const get = (name: string): string => readFileSync(join(workspace, name), "utf8");
