// A loop in a process of its own whose tool can be killed: WORKSPACE STORE MODEL DEADLY.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { chatTools } from "./harness.ts";

const [workspace = "", store = "", baseURL = "", deadly = ""] = process.argv.slice(2);
const rewind = await openRewind({ workspace, store, exclude: ["runs.log"] });
const openai = withRewind(new OpenAI({ apiKey: "none", baseURL, maxRetries: 0 }), rewind, { thread: "t1" });
const write = openai.rewind.tool("write_file", ({ path, text }: { path: string; text: string }) => {
  appendFileSync(join(workspace, "runs.log"), `${path}\n`);
  if (path === deadly) process.kill(process.pid, "SIGKILL");
  writeFileSync(join(workspace, path), text);
  return `wrote ${path}`;
});
const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "go" }];
for (;;) {
  const completion = await openai.chat.completions.create({ model: "scripted", messages, tools: chatTools });
  const message = completion.choices[0]?.message;
  if (message === undefined) throw new Error("no message");
  messages.push(message);
  if (message.tool_calls === undefined || message.tool_calls.length === 0) break;
  for (const call of message.tool_calls) {
    if (call.type !== "function") continue;
    messages.push({ role: "tool", tool_call_id: call.id, content: await write(JSON.parse(call.function.arguments)) });
  }
}
await rewind.close();
