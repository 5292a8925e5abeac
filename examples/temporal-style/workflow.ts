// An agent as a durable workflow: replayed from its journal after a crash, and gone on with from the pair that the last id names.
import type { Rewind, Thread } from "agentrewind";
import type { Journal } from "./journal.ts";

/** What the agent's conversation holds; large tool outputs are in here, and nowhere in the journal. */
export interface Message {
  readonly role: "user" | "assistant" | "tool";
  readonly content: string;
}

/** One turn: the model decides, a tool acts in the workspace. Null when the model is done. */
export type Activity = (turn: number, messages: readonly Message[]) => Promise<readonly Message[] | null>;

export interface WorkflowOptions {
  readonly rewind: Rewind;
  readonly journal: Journal;
  readonly thread: string;
  readonly task: string;
  readonly activity: Activity;
}

export interface WorkflowResult {
  /** Turns that this process ran; those that the journal had are not run again. */
  readonly ran: number;
  readonly turns: number;
  readonly checkpoint: string;
}

/**
 * A turn counts from the moment at which its line is in the journal, and the line is written when the checkpoint that it names is durable
 * (`gate: "durable"`). What a killed process did behind the last line, in the files and in the conversation, is taken back before the turn runs again.
 */
export async function runWorkflow(options: WorkflowOptions): Promise<WorkflowResult> {
  const { rewind, journal, activity } = options;
  const thread = rewind.thread(options.thread);
  let at = lastId(journal) ?? (await start(thread, options));
  let turn = journal.events.filter(({ event }) => event === "turn-completed").length;
  if (journal.events.at(-1)?.event === "workflow-completed") return { ran: 0, turns: turn, checkpoint: at };

  let messages = await comeBack(thread, at);
  for (let ran = 0; ; ran++) {
    const added = await activity(turn + 1, messages);
    if (added === null) {
      journal.append({ event: "workflow-completed", checkpoint: at });
      return { ran, turns: turn, checkpoint: at };
    }
    messages = [...messages, ...added];
    turn++;
    at = (await thread.checkpoint({ context: { messages } })).id;
    journal.append({ event: "turn-completed", turn, checkpoint: at });
  }
}

const lastId = (journal: Journal): string | undefined => journal.events.at(-1)?.checkpoint;

async function start(thread: Thread, { journal, task }: WorkflowOptions): Promise<string> {
  const { id } = await thread.checkpoint({ context: { messages: [{ role: "user", content: task }] } });
  journal.append({ event: "workflow-started", thread: thread.name, checkpoint: id });
  return id;
}

/** Both halves as they were at the id, wherever the process was killed behind it. */
async function comeBack(thread: Thread, id: string): Promise<readonly Message[]> {
  const { context } = await thread.rewind({ to: id });
  return context.messages as readonly Message[];
}
