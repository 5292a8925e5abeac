// The rewind tools as the model sees them: names, descriptions, arguments. Read by a model: product text.
import { z } from "zod";

export const rewindTool = {
  name: "rewind",
  description:
    "Take back a wrong step: the conversation and the files both return to an earlier checkpoint, and you go on from there with the lesson you give. " +
    "Use it when what you did cannot be repaired by going on (something needed was overwritten or deleted, or the approach was wrong). " +
    "Get the id from list_checkpoints. Call it alone: other calls in the same message are not run.",
  schema: z.object({
    checkpoint: z
      .string()
      .describe("Id from list_checkpoints, for example c7. You return to the moment before the step named there."),
    lesson: z
      .union([
        z.string(),
        z.object({
          attempted: z.string().optional().describe("What you tried."),
          disproved: z.string().optional().describe("What you believed and proved false."),
          evidence: z.string().optional().describe("What showed it."),
          consequence: z.string().optional().describe("What it did."),
          instead: z.string().optional().describe("What to do instead."),
        }),
      ])
      .describe(
        "For yourself after the return, when you will not remember this attempt: what you tried, what proved false, what to do instead.",
      ),
  }),
} as const;

export const listCheckpointsTool = {
  name: "list_checkpoints",
  description: "List the checkpoints that rewind can return to: what was done from each, and which files changed.",
  schema: z.object({}),
} as const;

export const checkpointTool = {
  name: "checkpoint",
  description:
    "Give the present moment a name, so that it is easy to find in list_checkpoints and can be returned to (for example before a risky step). Ordinary steps are recorded without this.",
  schema: z.object({ label: z.string().describe("A few words, for example: tests green before the migration") }),
} as const;
