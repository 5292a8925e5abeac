// Replays a trace through the public interface: a turn, its gate, its commands in the workspace.
import type { Activity, Checkpoint, Rewind } from "agentrewind";
import { env, trace } from "./trace.ts";

export interface ReplayOptions {
  readonly thread?: string;
  /** The first turn that is run, from 1. */
  readonly from?: number;
  /** The last one. */
  readonly to?: number;
  /** Milliseconds that the model takes. */
  readonly latencyMs?: number;
  /** Called where the model would be asked. */
  onDecision?(turn: number, id: string): void | Promise<void>;
  /** Called behind the gate, before the reply's commands run. */
  onGate?(turn: number, checkpoint: Checkpoint): void | Promise<void>;
  /** Called when a turn's commands have run. */
  onDone?(turn: number): void | Promise<void>;
}

interface Said {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
}

/** A conversation as it stands before turn `turn`. */
const conversation = (turn: number): Said[] => [
  { role: "user", text: "go" },
  ...trace
    .slice(0, turn - 1)
    .flatMap((lines, index): Said[] => [
      { role: "assistant", text: lines.length === 0 ? `turn ${index + 1}` : lines.join("; ") },
      ...lines.map((): Said => ({ role: "tool", text: "done" })),
    ]),
];

export async function replay(rewind: Rewind, options: ReplayOptions = {}): Promise<void> {
  const { from = 1, to = trace.length, latencyMs = 0 } = options;
  const thread = rewind.thread(options.thread ?? "trace");
  let activity = activityOf(trace[from - 2] ?? []);
  for (let turn = from; turn <= to; turn++) {
    const begun = await thread.beginTurn(
      { messages: conversation(turn) },
      { anchor: `turn ${turn} in epoch ${thread.epoch}`, activity },
    );
    await options.onDecision?.(turn, begun.id);
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
    const lines = trace[turn - 1] as readonly string[];
    const calls = lines.map((command) => ({ tool: "bash", input: { command } }));
    const checkpoint = await begun.gate({ tools: calls.length > 0, calls });
    await options.onGate?.(turn, checkpoint);
    for (const line of lines) {
      const { exitCode, stderr } = await rewind.environment.exec(line, { env });
      if (exitCode !== 0) throw new Error(`turn ${turn}: ${line}: ${stderr}`);
    }
    activity = activityOf(lines);
    await options.onDone?.(turn);
  }
}

const activityOf = (lines: readonly string[]): Activity => ({
  said: lines.length === 0 ? "said something" : "",
  actions: lines.map((command) => ({
    tool: "bash",
    input: JSON.stringify({ command }),
    output: "done",
    failed: false,
  })),
});
