// One life of the agent's process, from outside.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { kill, killTree } from "./kill.ts";
import { type Place, plainEnvironment } from "./place.ts";
import { openOptions, type Policy } from "./policies.ts";
import type { Trace } from "./traces/trace.ts";

const program = fileURLToPath(new URL("agent.mjs", import.meta.url));
const longestMs = 180_000;

export interface CheckpointLine {
  readonly id: string;
  readonly parent: string | null;
  readonly kind: string;
  readonly state: string;
  readonly files: string | null;
  readonly processes: string | null;
  readonly bytes: number;
  readonly exposedMs: number;
  readonly overlappedMs: number;
  readonly problems: readonly string[];
}

export interface Verified {
  readonly pass: boolean;
  readonly why: string;
  readonly checkpoints: readonly CheckpointLine[];
}

export type Told =
  | { readonly type: "opened" | "finished" | "closed" }
  | { readonly type: "tool" | "tool-done"; readonly call: string }
  | ({ readonly type: "verified" } & Verified);

export interface Life {
  kill(victim: "agent" | "sandbox"): void;
  /** Resolves when it has ended, with what it said of its end; undefined where it did not come to that. */
  readonly ended: Promise<Verified | undefined>;
  /** What it wrote to its standard error. */
  stderr(): string;
}

export function beginLife(
  place: Place,
  trace: Trace,
  policy: Policy,
  baseURL: string,
  onTold: (told: Told) => void,
): Life {
  const { workspace, conversation } = place;
  const open = openOptions(policy, trace);
  const told = { workspace, store: place.store(), open, keeps: policy.keeps, conversation, baseURL };
  const child: ChildProcess = fork(program, [JSON.stringify({ ...told, verify: trace.verify })], {
    cwd: "/",
    env: plainEnvironment(),
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let stderr = "";
  child.stderr?.on("data", (bytes) => {
    stderr += bytes;
  });
  let verified: Verified | undefined;
  child.on("message", (message: Told) => {
    if (message.type === "verified") verified = message;
    onTold(message);
  });
  const pid = child.pid as number;
  const over = new AbortController();
  const ended = once(child, "close").then(() => {
    over.abort();
    return verified;
  });
  sleep(longestMs, undefined, { signal: over.signal }).then(
    () => killTree(pid),
    () => {},
  );
  return {
    kill: (victim) => (victim === "agent" ? kill(pid) : killTree(pid)),
    ended,
    stderr: () => stderr,
  };
}
