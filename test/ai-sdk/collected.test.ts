// A stream of the AI SDK put together again is what the model gives without a stream.
import { expect, it } from "vitest";
import { Collected, type StreamPart } from "../../adapters/ai-sdk/reply.ts";

const end = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: {} } as unknown as StreamPart;

it.each([
  ["begins", [{ providerMetadata: { p: { itemId: "rs" } } }, {}, {}]],
  ["goes on", [{}, { providerMetadata: { p: { itemId: "rs" } } }, {}]],
  ["ends", [{}, {}, { providerMetadata: { p: { itemId: "rs" } } }]],
])("what the provider says of a block when it %s is the block's", (_when, [first, middle, last]) => {
  const collected = new Collected();
  collected.push({ type: "reasoning-start", id: "r", ...first });
  collected.push({ type: "reasoning-delta", id: "r", delta: "so", ...middle });
  collected.push({ type: "reasoning-end", id: "r", ...last });
  collected.push(end);
  expect(collected.reply?.content).toEqual([
    { type: "reasoning", text: "so", providerMetadata: { p: { itemId: "rs" } } },
  ]);
});
