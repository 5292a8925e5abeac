// What every adapter over the relay lets its user choose.
import type { Thread } from "../session/thread.ts";
import type { RewindRequest } from "../session/types.ts";
import type { Format, Item } from "../wire/index.ts";
import type { Replay } from "./log.ts";
import { Relay } from "./relay.ts";
import type { HumanMessages, RelayOptions } from "./types.ts";

export interface ConversationOptions {
  /** Name of the thread: one conversation, also across processes. */
  readonly thread: string;
  /** Messages that a person sent after the target of a rewind. Default "keep": they stay behind the restored ones. */
  readonly humanMessages?: HumanMessages;
  /** Files that somebody else changed, when the agent rewinds. Default "keep" in a directory, "restore" elsewhere. */
  readonly external?: "keep" | "restore";
  /**
   * A loop that starts over in a new process with the same first messages gets the recorded replies, as long as its requests are the recorded ones. "unfinished" (the
   * default): where the last reply still asked for something; a finished run begins anew.
   */
  readonly replay?: Replay;
  /** Runs after each rewind of the agent, for example "npm test"; where it fails, the state that was left comes back and the model is told. */
  readonly verify?: RewindRequest["verify"];
}

/** What a model, or a provider of models, knows of its conversation. */
export interface ConversationHandle {
  readonly thread: Thread;
  /** What the model sees of the conversation: without what was taken back, with the lessons. */
  messages(): Promise<Item[]>;
  /**
   * The function of a tool that runs once for each call, also when the loop starts over; a call that a rewind has overtaken does not run. What it returns must be
   * JSON.
   */
  execute<Args, Result, Rest extends readonly unknown[] = []>(
    name: string,
    run: (args: Args, ...rest: Rest) => Promise<Result> | Result,
  ): (args: Args, ...rest: Rest) => Promise<Result | string>;
}

/** @param callId finds the call's id in what the framework gives a tool beside its arguments */
export const handleOf = (
  relay: Relay,
  callId: (rest: readonly unknown[]) => string | undefined,
): ConversationHandle => ({
  thread: relay.thread,
  messages: () => relay.effective(),
  execute:
    (name, run) =>
    (args, ...rest) =>
      relay.runTool(name, args, (given) => run(given, ...rest), callId(rest)),
});

interface Opened {
  thread(name: string): Thread;
  readonly environment: { readonly kind: string };
}

export function openRelay(
  rewind: Opened,
  format: Format,
  options: ConversationOptions & Pick<RelayOptions, "handsOver">,
): Relay {
  const { thread, external, handsOver, humanMessages, replay, verify } = options;
  return new Relay({
    thread: rewind.thread(thread),
    format,
    external: external ?? (rewind.environment.kind === "directory" ? "keep" : "restore"),
    ...(humanMessages === undefined ? {} : { humanMessages }),
    ...(replay === undefined ? {} : { replay }),
    ...(verify === undefined ? {} : { verify }),
    ...(handsOver === undefined ? {} : { handsOver }),
  });
}

/** Runs a tool for a call of the conversation's last reply, as `Relay.runTool`. */
export type RunTool = <Args, Result>(
  name: string,
  args: Args,
  run: (args: Args) => Promise<Result> | Result,
  id?: string,
) => Promise<Result | string>;

const recorders = new WeakMap<object, Map<string, RunTool>>();

/** For adapters: who records the tools of this conversation. */
export function recordTools(rewind: object, thread: string, run: RunTool): void {
  const known = recorders.get(rewind) ?? new Map<string, RunTool>();
  recorders.set(rewind, known.set(thread, run));
}

/** For adapters: their own tools, recorded where the conversation that they serve is known. */
export async function runRecorded<Args, Result>(
  rewind: object,
  thread: string | undefined,
  tool: { readonly name: string; readonly args: Args; readonly id?: string },
  run: (args: Args) => Promise<Result> | Result,
): Promise<Result | string> {
  const known = thread === undefined ? undefined : recorders.get(rewind)?.get(thread);
  return known === undefined ? run(tool.args) : known(tool.name, tool.args, run, tool.id);
}
