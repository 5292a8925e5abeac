// What is remembered of a growing list is what would be worked out anew.
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { anchorsOf } from "../../adapters/graph-state/messages.ts";
import { paired } from "../../adapters/graph-state/pairing.ts";

type Step = "human" | "calls" | "result" | "all results" | "cut" | "drop" | "strip" | "name";

let count = 0;

function run(messages: BaseMessage[], step: Step): BaseMessage[] {
  const id = `m${++count}`;
  const last = messages.findLast((message) => AIMessage.isInstance(message));
  const open = (last?.tool_calls ?? []).filter(
    (call) => !messages.some((message) => ToolMessage.isInstance(message) && message.tool_call_id === call.id),
  );
  const result = (call: { id?: string } | undefined): BaseMessage[] =>
    call?.id === undefined ? [] : [new ToolMessage({ id: `${id}-${call.id}`, content: "done", tool_call_id: call.id })];
  if (step === "human") return [...messages, new HumanMessage({ id, content: "go" })];
  if (step === "calls") {
    const tool_calls = [1, 2].map((n) => ({ id: `${id}c${n}`, name: "f", args: {} }));
    return [...messages, new AIMessage({ id, content: "", tool_calls })];
  }
  if (step === "result") return [...messages, ...result(open[0])];
  if (step === "all results") return [...messages, ...open.flatMap(result)];
  if (step === "cut") return [messages[0] as BaseMessage, ...messages.slice(Math.ceil(messages.length / 2))];
  if (step === "drop") return messages.length > 1 ? messages.slice(0, -1) : messages;
  const message = messages.at(-1) as BaseMessage;
  // In place, as other middleware does.
  if (step === "strip" && AIMessage.isInstance(message)) message.tool_calls = (message.tool_calls ?? []).slice(1);
  if (step === "name") message.id = `${id}-named`;
  return messages;
}

const clone = (message: BaseMessage): BaseMessage => {
  const Message = message.constructor as new (fields: unknown) => BaseMessage;
  return new Message({ ...message, id: message.id });
};

const shape = (messages: readonly BaseMessage[]): unknown[] =>
  messages.map((message) => [message.getType(), message.id, (message as ToolMessage).tool_call_id]);

test("anchors and pairs", () => {
  const step = fc.constantFrom<Step>(
    "human",
    "calls",
    "result",
    "all results",
    "all results",
    "cut",
    "drop",
    "strip",
    "name",
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let messages: BaseMessage[] = [new HumanMessage({ id: `first${++count}`, content: "go" })];
      for (const one of steps) {
        messages = run(messages, one);
        const anew = messages.map(clone);
        expect(anchorsOf(messages)).toEqual(anchorsOf(anew));
        expect(shape(paired(messages))).toEqual(shape(paired(anew)));
        const shorter = messages.slice(0, -1);
        expect(shape(paired(shorter))).toEqual(shape(paired(shorter.map(clone))));
      }
    }),
    { numRuns: 300 },
  );
});
