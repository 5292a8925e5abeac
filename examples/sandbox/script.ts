// The scripted model of the example: starts a service that counts, takes orders with it, kills it by mistake, and rewinds to the running one.
import { type ChatRequest, type Reply, textOf } from "agentrewind/conformance";

const call = (name: string, args: Record<string, unknown>): Reply => ({ toolCalls: [{ name, args }] });

export const port = 8123;
export const task = "Number three orders with the counter service of this folder.";
export const lesson =
  "Cleaned up with `pkill python3`: that ended the counter, and what it had counted was gone with it. End programs by their job number only.";

const order = `curl -s localhost:${port}`;

export function decide({ messages }: ChatRequest): Reply {
  const last = textOf(messages.at(-1)?.content);
  if (last.startsWith("You are back at")) return call("bash", { command: `${order} # third` });
  if (last.startsWith("Checkpoints, newest first")) {
    const before = last.split("\n").find((line) => /^c\d+ /.test(line) && line.includes("pkill"));
    return call("rewind", { checkpoint: /^c\d+/.exec(before ?? "")?.[0] ?? "c0", lesson });
  }
  if (last.includes("order 3")) return { content: "The orders have the numbers 1, 2 and 3." };
  if (last.includes("exit code 7")) return call("list_checkpoints", {});
  if (last.includes("order 2"))
    return call("bash", { command: `pkill python3; sleep 0.2; curl -sS localhost:${port} # third` });
  if (last.includes("order 1")) return call("bash", { command: `${order} # second` });
  if (last.includes("ready")) return call("bash", { command: `${order} # first` });
  return call("bash", {
    command: `python3 counter.py ${port} & for i in $(seq 100); do grep -qs ready log && break; sleep 0.1; done; cat log`,
  });
}
