// Commands that change something: handed to the process that holds the workspace, or done here under the lock.
import { setTimeout as sleep } from "node:timers/promises";
import { isRewindError, RewindError } from "../errors.ts";
import type { Rewind } from "../opened.ts";
import { openRewind } from "../rewind.ts";
import type { ControlCommand } from "../session/control.ts";
import { opaqueSerializer } from "../session/serializer.ts";
import type { Thread } from "../session/thread.ts";
import { askHolder } from "../store/control.ts";
import { resolveWorkspace } from "../workspace.ts";
import type { Global } from "./global.ts";
import { chooseThread, newThread, nothingRecorded, withReader } from "./recorded.ts";

export interface Order<T> {
  readonly command: ControlCommand;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The same, on a thread that is held here. */
  readonly here: (thread: Thread, rewind: Rewind) => Promise<T>;
  /** True when it may be the first thing that is recorded of the workspace. */
  readonly begins: boolean;
  /** What becomes of an order whose holder ended before it answered. Default: it is given again. */
  readonly afterLoss?: (thread: Thread, epochBefore: number) => Promise<T>;
}

/** How long a holder that comes or goes is waited for. */
const busyMs = 5_000;
const noticeMs = 1_000;
/** Holders that end before they answer: short ones, other commands, can follow each other. */
const lossesBorne = 5;

interface Target {
  readonly environment: string;
  readonly kind: string;
  readonly locks: string;
  readonly thread: string;
  readonly epoch: number;
}

/** @throws NO_THREAD, ENVIRONMENT_BUSY, NOT_AVAILABLE, and what the order throws */
export async function give<T>(global: Global, order: Order<T>): Promise<T> {
  resolveWorkspace(global.workspace, global.store, global.allowBroad, true);
  let deadline = Date.now() + busyMs;
  let losses = 0;
  let lostAt: number | undefined;
  for (;;) {
    const target = await findTarget(global, order.begins);
    // An order that must not be given twice is not handed to the next holder either.
    if (target !== undefined && (lostAt === undefined || order.afterLoss === undefined)) {
      try {
        const answer = await ask(target, order);
        if (answer !== undefined) return answer.ok as T;
      } catch (error) {
        if (!isEnding(error) || ++losses > lossesBorne) throw error;
        if (isRewindError(error, "CONTROL_FAILED")) lostAt ??= target.epoch;
        deadline = Date.now() + busyMs;
      }
    }
    const kind = ownKind(target?.kind ?? "directory");
    try {
      return await doHere(global, order, lostAt, kind);
    } catch (error) {
      if (!isRewindError(error, "ENVIRONMENT_BUSY") || Date.now() > deadline) throw error;
      await sleep(30 + Math.random() * 50);
    }
  }
}

function findTarget(global: Global, begins: boolean): Promise<Target | undefined> {
  return withReader(global, (reader, workspace) => {
    const recorded = reader?.recorded;
    if (reader === undefined || recorded === undefined) {
      if (begins) return undefined;
      throw nothingRecorded(global, workspace, reader !== undefined);
    }
    return {
      environment: recorded.id,
      kind: recorded.kind,
      locks: reader.layout.locks,
      thread: begins ? (global.thread ?? chooseThread(recorded, undefined)) : chooseThread(recorded, global.thread),
      epoch: recorded.epoch(),
    };
  });
}

async function ask<T>(target: Target, order: Order<T>): Promise<{ ok: unknown } | undefined> {
  const notice = setTimeout(() => process.stderr.write("waiting for the agent's next turn boundary…\n"), noticeMs);
  try {
    return await askHolder(target.locks, target.environment, {
      command: order.command,
      arguments: { thread: target.thread, ...order.arguments },
    });
  } finally {
    clearTimeout(notice);
  }
}

/** The holder closed before it began (CLOSED), or ended and nobody knows how far it came. */
const isEnding = (error: unknown): boolean =>
  isRewindError(error, "CLOSED") || (isRewindError(error, "CONTROL_FAILED") && error.details.ended === true);

async function doHere<T>(
  global: Global,
  order: Order<T>,
  lostAt: number | undefined,
  environment: OwnKind,
): Promise<T> {
  const rewind = await openRewind({
    workspace: global.workspace,
    store: global.store,
    environment,
    gate: "durable",
    // The command says it itself (main.ts).
    softLimit: 0,
    allowBroadWorkspace: global.allowBroad,
  });
  try {
    const thread = rewind.thread(global.thread ?? rewind.threads()[0] ?? newThread, { serializer: opaqueSerializer });
    if (lostAt !== undefined && order.afterLoss !== undefined) return await order.afterLoss(thread, lostAt);
    return await order.here(thread, rewind);
  } finally {
    await rewind.close();
  }
}

type OwnKind = "directory" | "sandbox";

/** @throws NOT_AVAILABLE where only its own program can open it */
function ownKind(kind: string): OwnKind {
  if (kind === "directory" || kind === "sandbox") return kind;
  throw foreign(kind);
}

function foreign(kind: string): RewindError {
  return new RewindError(
    "NOT_AVAILABLE",
    `This workspace is recorded by a program with an environment of its own ("${kind}"), and that program does not run.`,
    { hint: "Start it, and run the command again." },
  );
}
