// Requests that other processes hand to the holder: run at the next turn boundary, at once when no turn runs.
import { z } from "zod";
import type { Applied, ApplyOptions } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import type { SessionDeps } from "./deps.ts";
import type { Pruned, PruneRequest } from "./prune.ts";
import type { UndoOptions } from "./rewinder.ts";
import { opaqueSerializer } from "./serializer.ts";
import { type CheckpointOptions, Thread } from "./thread.ts";
import type { RewindRequest } from "./types.ts";
import type { Finding } from "./verify.ts";

const threadName = z.string().min(1);
const activity = z.strictObject({
  said: z.string(),
  actions: z.array(z.strictObject({ tool: z.string(), input: z.string(), output: z.string(), failed: z.boolean() })),
});
const commands = {
  checkpoint: z.strictObject({ thread: threadName, label: z.string().optional(), activity: activity.optional() }),
  rewind: z.strictObject({
    thread: threadName,
    to: z.string(),
    lesson: z.string().optional(),
    verify: z.string().optional(),
    scope: z.enum(["both", "environment", "context"]).optional(),
    paths: z.array(z.string()).optional(),
    dryRun: z.boolean().optional(),
    key: z.string().min(1).optional(),
  }),
  undo: z.strictObject({ thread: threadName, dryRun: z.boolean().optional() }),
  fork: z.strictObject({ thread: threadName, id: z.string(), count: z.int().optional(), into: z.string().optional() }),
  label: z.strictObject({ thread: threadName, label: z.string(), id: z.string().optional() }),
  prune: z.strictObject({
    thread: threadName,
    keepLast: z.number().optional(),
    keepWithin: z.string().optional(),
    threads: z.array(threadName).optional(),
    dryRun: z.boolean().optional(),
  }),
  export: z.strictObject({ thread: threadName, to: z.string().min(1), checkpoint: z.string().optional() }),
  /** From gc: the packs of this environment are written no more. */
  seal: z.strictObject({}),
  apply: z.strictObject({
    thread: threadName,
    paths: z.array(z.string()).optional(),
    overwrite: z.boolean().optional(),
    dryRun: z.boolean().optional(),
  }),
  /** Beside the agent, in its environment. */
  exec: z.strictObject({ thread: threadName, command: z.array(z.string()).min(1) }),
  verify: z.strictObject({ thread: threadName }),
  diff: z.strictObject({ thread: threadName, from: z.string(), to: z.string().optional() }),
} as const;

export type ControlCommand = keyof typeof commands;

export interface Upkeep {
  prune(request: PruneRequest): Promise<Pruned>;
  seal(): Promise<boolean>;
  apply(request: ApplyOptions): Promise<Applied>;
  verify(): Promise<Finding[]>;
  export(request: { readonly thread: string; readonly to: string; readonly checkpoint?: string }): Promise<unknown>;
}

/** @throws CONTROL_FAILED for a request that is not understood, CLOSED when its caller has gone, and what the operation throws */
export async function performControl(
  deps: SessionDeps,
  upkeep: Upkeep,
  fork: (id: string, request: Readonly<Record<string, unknown>>) => Promise<unknown>,
  request: { readonly command: string; readonly arguments: Readonly<Record<string, unknown>> },
  mayBegin: () => boolean,
): Promise<unknown> {
  const schema = commands[request.command as ControlCommand];
  const parsed = schema?.safeParse(request.arguments);
  if (parsed === undefined || !parsed.success) {
    throw new RewindError(
      "CONTROL_FAILED",
      `The process that holds this workspace does not understand "${request.command}".`,
      {
        hint: "Use the same version of AgentRewind for the command and for the agent.",
      },
    );
  }
  const given = parsed.data as Record<string, unknown> & { thread: string };
  // What needs no boundary: no head moves and no file changes.
  if (request.command === "seal") return upkeep.seal();
  if (request.command === "prune") {
    const { thread: _, ...policy } = given;
    return upkeep.prune(policy as PruneRequest);
  }
  if (request.command === "verify") return upkeep.verify();
  if (request.command === "exec") return deps.environment.exec(given.command as string[]);
  if (request.command === "apply") {
    const { thread: _, ...wanted } = given;
    return upkeep.apply(wanted as ApplyOptions);
  }
  if (request.command === "export") return upkeep.export(given as Parameters<Upkeep["export"]>[0]);
  const thread = new Thread(deps, given.thread, opaqueSerializer);
  const requireWaiting = (): void => {
    if (!mayBegin())
      throw new RewindError("CLOSED", "Nobody waits for this request any more.", { hint: "Send the request again." });
  };
  if (request.command === "fork") {
    // It reads a stored state only, and need not wait for the boundary.
    const { id, ...rest } = given;
    requireWaiting();
    return fork(id as string, rest);
  }
  // The boundary is behind a subagent that runs; what will be refused ends none.
  if (given.dryRun !== true && willMove(thread, request.command, given.to)) deps.coordinator.endTools();
  return deps.coordinator.atBoundary(async () => {
    requireWaiting();
    const { thread: _, ...rest } = given;
    if (request.command === "checkpoint") return thread.checkpoint(rest as CheckpointOptions);
    if (request.command === "label") return thread.label(given.label as string, given.id as string | undefined);
    if (request.command === "undo") return withoutContext(await thread.undo(rest as UndoOptions));
    if (request.command === "diff") return thread.diff(given.from as string, given.to as string | undefined);
    return withoutContext(await thread.rewind(rest as unknown as RewindRequest));
  });
}

function willMove(thread: Thread, command: string, to: unknown): boolean {
  if (command === "undo") return thread.canUndo();
  if (command !== "rewind") return false;
  try {
    return thread.get(to as string) !== undefined;
  } catch {
    return false;
  }
}

/** A context can be large and is of no use outside of its framework. */
function withoutContext<T extends { readonly context: unknown }>(result: T): Omit<T, "context"> {
  const { context: _, ...rest } = result;
  return rest;
}
