// The rewind tools in the form of each API.
import { ownTools } from "agentrewind/relay";
import { z } from "zod";
import type { Json } from "./api.ts";

const parts = ownTools.map(({ name, description, schema }) => {
  const { $schema: _, ...parameters } = z.toJSONSchema(schema);
  return { name, description, parameters };
});

export const chatTools: readonly Json[] = parts.map((one) => ({ type: "function", function: one }));
export const responsesTools: readonly Json[] = parts.map((one) => ({ type: "function", ...one, strict: false }));

/** `tools` with ours behind; one that the caller has under the same name is the caller's mistake to hear of. */
export const withOwn = (tools: unknown, own: readonly Json[]): unknown[] => [
  ...(Array.isArray(tools) ? tools : []),
  ...own,
];
