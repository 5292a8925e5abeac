// The scripted models of the example: a main agent that delegates, looks, and takes the whole delegation back; and its subagent.
import { type ChatRequest, type Reply, textOf } from "agentrewind/conformance";

const call = (name: string, args: Record<string, unknown>): Reply => ({ toolCalls: [{ name, args }] });

export const task = "Remove the duplicate lines from /orders.csv. The rest stays as it is.";
export const lesson =
  "Delegated to the cleaner, which sorted the file: the header is no longer its first line. Remove duplicates with awk, which keeps the order.";

export function decide({ messages }: ChatRequest): Reply {
  const all = messages.map((message) => textOf(message.content)).join("\n");
  if (all.includes("You clean files.")) {
    if (all.includes("succeeded with exit code 0")) return { content: "The duplicates are gone." };
    return call("execute", { command: "sort -u orders.csv -o orders.csv" });
  }
  if (all.includes("You are back at")) {
    if (all.includes("clean: yes"))
      return { content: "The duplicates are removed; header and order are as they were." };
    return call("execute", { command: "awk '!seen[$0]++' orders.csv > new && mv new orders.csv && echo clean: yes" });
  }
  if (all.includes("Checkpoints, newest first")) {
    const before = all.split("\n").find((line) => /^c\d+ /.test(line) && line.includes("before: task"));
    return call("rewind", { checkpoint: /^c\d+/.exec(before ?? "")?.[0] ?? "c0", lesson });
  }
  if (all.includes("2026-01-03;7")) return call("list_checkpoints", {});
  if (all.includes("The duplicates are gone.")) return call("execute", { command: "head -1 orders.csv" });
  return call("task", { description: "Remove the duplicate lines from /orders.csv.", subagent_type: "cleaner" });
}
