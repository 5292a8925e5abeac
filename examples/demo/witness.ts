// A middleware that only watches: what is said and done, how the tree looks at each model decision, when a rewind has happened.
import { AIMessage, createMiddleware, ToolMessage } from "langchain";
import { readTree, type Tree } from "./digest.ts";

/** The tree at one model decision. No tool runs then, so it is what the checkpoint of this decision has to describe. */
export interface Moment {
  readonly tree: Tree;
  /** The checkpoint that was made of it; known when the reply is there. */
  checkpoint: string | null;
}

export interface ObservedRewind {
  /** The checkpoint that the model named. */
  readonly to: string;
  readonly lesson: string;
  readonly ms: number;
  /** The decision to rewind, and the first decision after it. */
  readonly left: Moment;
  readonly after: Moment;
}

export type Event =
  | { type: "reply"; turn: number; text: string; calls: readonly { name: string; args: Record<string, unknown> }[] }
  | { type: "result"; name: string; failed: boolean; text: string }
  | { type: "back"; to: string; ms: number; message: string };

export interface Witness {
  /** Every decision, the abandoned ones included. */
  readonly moments: readonly Moment[];
  readonly rewinds: readonly ObservedRewind[];
  readonly middleware: ReturnType<typeof createMiddleware>;
}

export interface WitnessOptions {
  readonly folder: string;
  /** The checkpoint that the thread is at. */
  readonly head: () => string | null;
  readonly tell: (event: Event) => void;
}

/** To be the first middleware: then a decision's checkpoint is made between its look at the tree and its sight of the reply. */
export function createWitness({ folder, head, tell }: WitnessOptions): Witness {
  const moments: Moment[] = [];
  const rewinds: ObservedRewind[] = [];
  let pending: Omit<ObservedRewind, "after"> | undefined;

  const middleware = createMiddleware({
    name: "Witness",
    wrapModelCall: async (request, handler) => {
      const last = request.messages.at(-1);
      const moment: Moment = { tree: readTree(folder), checkpoint: null };
      moments.push(moment);
      if (pending !== undefined) {
        rewinds.push({ ...pending, after: moment });
        tell({ type: "back", to: pending.to, ms: pending.ms, message: last?.text ?? "" });
        pending = undefined;
      }
      const turn = moments.length;
      const reply = await handler(request);
      moment.checkpoint = head();
      if (AIMessage.isInstance(reply)) {
        const calls = (reply.tool_calls ?? []).map(({ name, args }) => ({ name, args }));
        tell({ type: "reply", turn, text: reply.text, calls });
      }
      return reply;
    },
    wrapToolCall: async (request, handler) => {
      const { name, args } = request.toolCall;
      const left = moments.at(-1);
      const start = performance.now();
      const result = await handler(request);
      if (ToolMessage.isInstance(result)) {
        tell({ type: "result", name, failed: result.status === "error", text: result.text });
      } else if (name === "rewind" && left !== undefined) {
        const { checkpoint, lesson } = args as { checkpoint: string; lesson: string };
        pending = { to: checkpoint, lesson, ms: performance.now() - start, left };
      }
      return result;
    },
  });

  return { moments, rewinds, middleware };
}
