// Namespaces with a tree of processes, and a CRIU inside of them.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { CriuChannel, CriuProgram } from "../../src/environment/sandbox/processes/criu-channel.ts";
import { kernelFeatures } from "../../src/environment/sandbox/processes/kernel-features.ts";
import { pythonArguments, pythonPath } from "./python.ts";
import { tools } from "./tools.ts";

export const program = (): CriuProgram => tools().criu.tool as CriuProgram;
const python = (): string => pythonPath() ?? "python3";

export interface Namespace {
  /** Of the first process, as the host sees it. */
  readonly pid: number;
  /** Root of the tree, as the namespace sees it. */
  readonly tree: number;
  /** Ends everything in it. */
  end(): Promise<void>;
}

/** With a tree of these commands of bash, or without one. */
export async function namespace(commands: readonly string[] | null): Promise<Namespace> {
  const args = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", python()];
  const script = pythonArguments(
    "namespace.py",
    await kernelFeatures(program()),
    commands === null ? "empty" : "fresh",
  );
  // util-linux 2.38 complains when what it waits for is killed.
  const child = spawn("unshare", [...args, ...script, ...(commands ?? [])], { stdio: ["ignore", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await once(lines, "line")) as [string];
  const pid = await firstChild(child.pid ?? 0);
  return { pid, tree: Number(line.split(" ")[1]), end: () => ended(child, pid) };
}

/** The first process can be waited for only when all others of its namespace have gone. */
async function ended(child: ChildProcess, first: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = once(child, "exit");
  process.kill(first, "SIGKILL");
  await end;
}

async function firstChild(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim());
}

export interface TestChannel extends CriuChannel {
  /** CRIU's PID, as the host sees it. */
  readonly pid: number;
}

export async function openChannel(inside: Namespace, images: string): Promise<TestChannel> {
  const { prefix, command } = program();
  const child = spawn(python(), pythonArguments("swrk.py", `${inside.pid}`, prefix, images, ...command), {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const frames = readFrames(child.stdout);
  const next = async (): Promise<Uint8Array | null> => (await frames.next()).value ?? null;
  const pid = Number(Buffer.from((await next()) ?? []).toString());
  return {
    pid,
    send(message) {
      const header = Buffer.alloc(4);
      header.writeUInt32LE(message.length);
      child.stdin.write(Buffer.concat([header, message]));
    },
    receive: next,
    async close() {
      if (child.exitCode !== null) return;
      const end = once(child, "exit");
      child.stdin.end();
      await end;
    },
  };
}

async function* readFrames(stream: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array, undefined> {
  let rest = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32LE()) {
      const end = 4 + rest.readUInt32LE();
      yield rest.subarray(4, end);
      rest = rest.subarray(end);
    }
  }
  return undefined;
}

/** A script of test/fixtures, as a command of bash. */
export const pythonCommand = (script: string, ...args: string[]): string =>
  ["exec", python(), "-IS", resolve(import.meta.dirname, "../fixtures", script), ...args].join(" ");
