// The model of a trace: a real HTTP server that answers each request with the trace's next turn, after the time that the turn takes.
import { setTimeout as sleep } from "node:timers/promises";
import { type ModelServer, startModelServer } from "agentrewind/conformance";
import { latencyOf } from "./random.ts";
import type { Trace } from "./traces/trace.ts";

export interface TraceModel extends Pick<ModelServer, "baseUrl" | "errors" | "close"> {
  /** The turns for which it was asked, in order. */
  readonly asked: number[];
  /** The turns that it has answered, in order. */
  readonly answered: number[];
}

export const callName = (turn: number, call: number): string => `call_${turn}_${call}`;
export const turnOfCall = (name: string): number => Number(name.split("_")[1]);

/** @param onAsked false: nobody is there any more who could be answered */
export async function startModel(
  trace: Trace,
  scale: number,
  onAsked: (turn: number, latencyMs: number) => Promise<boolean> | boolean,
): Promise<TraceModel> {
  const asked: number[] = [];
  const answered: number[] = [];
  const server = await startModelServer({
    latencyMs: 0,
    model: "trace",
    async decide({ messages }) {
      const turn = messages.filter(({ role }) => role === "assistant").length;
      asked.push(turn);
      const latencyMs = latencyOf(trace.id, turn) * scale;
      const held = onAsked(turn, latencyMs);
      await sleep(latencyMs);
      if (await held) answered.push(turn);
      const step = trace.turns[turn];
      if (step === undefined) return { content: "Done." };
      return {
        content: step.say,
        toolCalls: step.calls.map(({ tool, args }, index) => ({ name: tool, args, id: callName(turn, index) })),
      };
    },
  });
  return { baseUrl: server.baseUrl, errors: server.errors, close: server.close, asked, answered };
}
