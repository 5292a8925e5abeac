// The rewind tools in the form of each API.
import { RewindError } from "agentrewind";
import { ownTools } from "agentrewind/relay";
import type { Json } from "./api.ts";

export const chatTools: readonly Json[] = ownTools.map((one) => ({ type: "function", function: one }));
export const responsesTools: readonly Json[] = ownTools.map((one) => ({ type: "function", ...one, strict: false }));

/** `tools` with ours behind. */
export const withOwn = (tools: unknown, own: readonly Json[]): unknown[] => [
  ...(Array.isArray(tools) ? tools : []),
  ...own,
];

const names: ReadonlySet<unknown> = new Set(ownTools.map(({ name }) => name));

/** @throws BAD_ARGUMENT when the caller has a tool under a name of ours: its calls would never reach it */
export function requireFree(tools: unknown): void {
  for (const tool of Array.isArray(tools) ? (tools as Json[]) : []) {
    const name = tool.name ?? (tool.function as Json | undefined)?.name;
    if (!names.has(name)) continue;
    throw new RewindError(
      "BAD_ARGUMENT",
      `A tool of this request is called "${String(name)}", as one of AgentRewind's.`,
      {
        hint: `Give it another name; ${[...names].join(", ")} are added to each request.`,
        details: { tool: name },
      },
    );
  }
}
