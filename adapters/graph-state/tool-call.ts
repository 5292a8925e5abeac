// One tool call of a reply: a rewind runs alone, any other marks that a tool runs.
import type { AIMessage, ToolMessage } from "@langchain/core/messages";
import { RewindError, rewindTool, siblingRefusal, staleRefusal, type Thread } from "agentrewind";
import { failure, refusal } from "./tools.ts";

type Call = NonNullable<AIMessage["tool_calls"]>[number];

export interface ToolCallRun<Result> {
  readonly thread: Thread;
  readonly call: Call;
  /** All calls of the reply. */
  readonly calls: readonly Call[];
  enter(): ReturnType<Thread["enterTool"]>;
  /** @param signal aborts when a rewind ends the tool; undefined for a rewind itself */
  run(signal: AbortSignal | undefined): Promise<Result>;
}

export async function runToolCall<Result>({
  thread,
  call,
  calls,
  enter,
  run,
}: ToolCallRun<Result>): Promise<Result | ToolMessage> {
  const { name, id = "" } = call;
  thread.runsAgain([id]);
  if (name === rewindTool.name) {
    const parsed = rewindTool.schema.safeParse(call.args);
    if (!parsed.success) return refusal(badArguments(), name, id);
    if (calls.length === 1) return run(undefined);
    const { checkpoint, lesson } = parsed.data;
    return refusal(thread.admissible(checkpoint, lesson) ?? notAlone(), name, id);
  }
  if (calls.some((one) => one.name === rewindTool.name)) return failure(name, id, siblingRefusal);
  const leave = await enter();
  if (leave === undefined) return failure(name, id, staleRefusal);
  try {
    return await leave.run(() => run(leave.signal));
  } finally {
    leave();
  }
}

const badArguments = (): RewindError =>
  new RewindError("BAD_ARGUMENT", "rewind needs a checkpoint and a lesson, both as text.", {
    hint: 'For example {"checkpoint": "c7", "lesson": "what was tried, what proved false, what to do instead"}.',
  });

const notAlone = (): RewindError =>
  new RewindError("BAD_ARGUMENT", "rewind was sent together with other calls.", { hint: "Send it again, alone." });
