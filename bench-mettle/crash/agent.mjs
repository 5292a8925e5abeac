// The agent: a loop over OpenAI's client in a process of its own, to be killed at any moment. It knows nothing of the trace; the model does. Told over its
// arguments what to keep, it says over IPC what it does.
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { openRewind } from "agentrewind";
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import { toolsOver, verified } from "./tools.mjs";

const { workspace, store, open, keeps, conversation, baseURL, verify } = JSON.parse(process.argv[2]);
const tell = (type, more = {}) => process.send({ type, ...more });

const rewind = await openRewind({ workspace, store, ...open });
tell("opened");
const { environment } = rewind;
const api = new OpenAI({ apiKey: "none", baseURL });
const recorded = keeps === "pairs";
const client = recorded ? withRewind(api, rewind, { thread: "t1" }) : api;

/** The name of the call that runs: calls run one after the other. */
let running;

function toolOf(name, run) {
  const told = async (args) => {
    const call = running;
    tell("tool", { call });
    const result = await run(args);
    tell("tool-done", { call });
    return result;
  };
  return recorded ? client.rewind.tool(name, told) : told;
}
const bound = Object.fromEntries(
  Object.entries(toolsOver(environment)).map(([name, run]) => [name, toolOf(name, run)]),
);
const definitions = Object.keys(bound).map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
}));

/** The loop's own log, of what an agent without pairs keeps. */
const log = keeps === "conversation" ? openSync(conversation, "a", 0o600) : undefined;
const messages =
  log === undefined
    ? []
    : readFileSync(conversation, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
function add(message) {
  messages.push(message);
  if (log === undefined) return;
  writeSync(log, `${JSON.stringify(message)}\n`);
  fsyncSync(log);
}

async function answer({ id, function: called }) {
  running = id;
  add({ role: "tool", tool_call_id: id, content: await bound[called.name](JSON.parse(called.arguments)) });
}

/** Calls of the last reply that nothing has answered yet. */
function unanswered() {
  const at = messages.findLastIndex(({ role }) => role === "assistant");
  const answered = new Set(messages.slice(at + 1).map((message) => message.tool_call_id));
  return (messages[at]?.tool_calls ?? []).filter(({ id }) => !answered.has(id));
}

if (messages.length === 0) add({ role: "user", content: "Do the task." });
for (const call of unanswered()) await answer(call);
for (;;) {
  const { choices } = await client.chat.completions.create({ model: "trace", messages, tools: definitions });
  const { role, content, tool_calls } = choices[0].message;
  add({ role, content, ...(tool_calls === undefined ? {} : { tool_calls }) });
  if (tool_calls === undefined) break;
  for (const call of tool_calls) await answer(call);
}
tell("finished");
const result = await verified(environment, verify);
const made = recorded ? rewind.thread("t1").checkpoints({ all: true }) : [];
tell("verified", {
  ...result,
  checkpoints: made.map(({ id, parent, kind, state, environment: halves, problems, timings }) => ({
    ...{ id, parent, kind, state, ...halves, ...timings },
    problems: problems.map(({ path, reason }) => `${path}: ${reason}`),
  })),
});
if (log !== undefined) closeSync(log);
await rewind.close();
tell("closed");
process.disconnect();
