// A message that was edited in place is not taken for the one that was stored.
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { langchainSerializer } from "../../adapters/graph-state/serializer.ts";

const make = (): BaseMessage[] => [
  new HumanMessage({ id: "h", content: "go" }),
  new AIMessage({ id: "a", content: "", tool_calls: [{ id: "c", name: "f", args: {} }] }),
  new ToolMessage({ id: "t", content: "done", tool_call_id: "c" }),
];

const isKnown = (message: unknown, mark: unknown): boolean => langchainSerializer.isMarked?.(message, mark) === true;

test("what nobody touched is known, everything else is not", () => {
  for (const message of make()) expect(isKnown(message, langchainSerializer.mark?.(message))).toBe(true);
  expect(isKnown({ plain: true }, langchainSerializer.mark?.({ plain: true }))).toBe(false);
});

test.each([
  "content",
  "id",
  "name",
  "additional_kwargs",
  "response_metadata",
  "tool_calls",
  "tool_call_id",
  "status",
  "artifact",
])("%s was set", (field) => {
  for (const message of make()) {
    const mark = langchainSerializer.mark?.(message);
    Object.assign(message, { [field]: field === "tool_calls" ? [] : "another" });
    expect(isKnown(message, mark)).toBe(false);
  }
});
