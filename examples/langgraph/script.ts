// The model of the example: writes notes, then a draft over them, sees that this was wrong, rewinds, and writes the report.
import { type ChatRequest, type Reply, textOf } from "agentrewind/conformance";

const call = (name: string, args: Record<string, unknown>): Reply => ({ toolCalls: [{ name, args }] });

export function decide({ messages }: ChatRequest): Reply {
  const last = textOf(messages.at(-1)?.content);
  if (last === "wrote report.txt") return { content: "The report is written." };
  if (last.startsWith("You are back at")) return call("write_file", { path: "report.txt", text: "The report." });
  if (last.startsWith("Checkpoints, newest first")) {
    const [checkpoint = ""] = /^c\d+(?=.*draft\.txt)/m.exec(last) ?? [];
    return call("rewind", { checkpoint, lesson: "No draft is wanted: write report.txt at once." });
  }
  if (last === "wrote draft.txt") return call("list_checkpoints", {});
  if (last === "wrote notes.txt") return call("write_file", { path: "draft.txt", text: "A draft." });
  return call("write_file", { path: "notes.txt", text: "Notes." });
}
