// One arm of the benchmark of turns, in a process of its own: `node arms.mjs ARM MESSAGES TURNS FOLDER`. Prints one JSON object: `turns`, the milliseconds of each, and
// what else was seen.
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { openRewind } from "agentrewind";
import { langchainSerializer, rewindMiddleware } from "agentrewind/langchain";
import { withRewind } from "agentrewind/openai";
import { createAgent, tool } from "langchain";
import OpenAI from "openai";
import { z } from "zod";

/** What the model takes to answer; a checkpoint is made beside it. */
const modelMs = 30;

const [arm, length, turns, folder] = [
  process.argv[2],
  Number(process.argv[3]),
  Number(process.argv[4]),
  process.argv[5],
];
const text = (at) => `message ${at} ${"x".repeat(200)}`;
const workspace = join(folder, "work");
mkdirSync(workspace, { recursive: true });
const open = () => openRewind({ workspace, store: join(folder, "store"), inspector: "scan" });

const message = (at) =>
  at % 2 === 0
    ? new HumanMessage({ id: `m${at}`, content: text(at) })
    : new AIMessage({ id: `m${at}`, content: text(at) });

const timed = async (work) => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

const cpuSince = (before) => {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
};

/** Marks moments; of the time from each to the next it gives the milliseconds, and those of the processor. */
function marks() {
  const at = [];
  return {
    mark: () => at.push({ time: performance.now(), cpu: process.cpuUsage() }),
    count: () => at.length,
    between: () => {
      const pairs = at.slice(1).map((now, n) => [at[n], now]);
      const sum = ({ cpu: { user, system } }) => (user + system) / 1_000;
      return {
        turns: pairs.map(([from, to]) => to.time - from.time),
        cpu: pairs.map(([from, to]) => sum(to) - sum(from)),
      };
    },
  };
}

const sizeOf = (path) =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);

/** The whole of one turn's checkpoint, with nothing beside it. `begun`: until the model may be called. */
async function checkpoints() {
  const rewind = await open();
  const thread = rewind.thread("t", { serializer: langchainSerializer });
  let messages = Array.from({ length }, (_, at) => message(at));
  const result = { turns: [], begun: [], bytes: [] };
  for (let turn = 0; turn < turns; turn++) {
    messages = [...messages, message(length + turn)];
    const start = performance.now();
    const begun = await thread.beginTurn({ messages: [...messages] }, { anchor: `at ${turn}` });
    result.begun.push(performance.now() - start);
    const { timings } = await begun.gate({ tools: false });
    result.turns.push(performance.now() - start);
    result.bytes.push(timings.bytes);
    await begun.durable;
    await sleep(modelMs / 3);
  }
  await rewind.close();
  return result;
}

/** `put` of a LangGraph saver, of a checkpoint with the same messages. */
async function puts(saver, storedBytes) {
  let messages = Array.from({ length }, (_, at) => message(at));
  const result = { turns: [], bytes: [] };
  let before = storedBytes();
  for (let turn = 0; turn < turns; turn++) {
    messages = [...messages, message(length + turn)];
    const checkpoint = {
      v: 4,
      id: `${turn}`.padStart(8, "0"),
      ts: new Date().toISOString(),
      channel_values: { messages },
      channel_versions: { messages: turn + 1 },
      versions_seen: {},
    };
    const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    const metadata = { source: "loop", step: turn, parents: {} };
    result.turns.push(await timed(() => saver.put(config, checkpoint, metadata, { messages: turn + 1 })));
    const now = storedBytes();
    result.bytes.push(now - before);
    before = now;
    await sleep(modelMs / 3);
  }
  return result;
}

function memory() {
  const saver = new MemorySaver();
  const inside = (value) =>
    value instanceof Uint8Array
      ? value.length
      : typeof value === "object" && value !== null
        ? Object.values(value).reduce((sum, one) => sum + inside(one), 0)
        : 0;
  return puts(saver, () => inside(saver.storage));
}

function sqlite() {
  const saver = SqliteSaver.fromConnString(join(folder, "saver.db"));
  return puts(saver, () => {
    if (saver.isSetup) saver.db.pragma("wal_checkpoint(TRUNCATE)");
    return sizeOf(folder);
  });
}

class Model extends BaseChatModel {
  asked = marks();

  _llmType() {
    return "scripted";
  }

  bindTools() {
    return this;
  }

  async _generate() {
    this.asked.mark();
    await sleep(modelMs);
    const at = this.asked.count();
    const tool_calls = at <= turns ? [{ type: "tool_call", id: `c${at}`, name: "note", args: { text: text(at) } }] : [];
    return { generations: [{ text: "", message: new AIMessage({ id: `r${at}`, content: "", tool_calls }) }] };
  }
}

/** A whole agent: from one request to the model to the next. */
async function agent(rewind) {
  const model = new Model({});
  const note = tool(({ text: noted }) => noted, {
    name: "note",
    description: "Notes.",
    schema: z.object({ text: z.string() }),
  });
  const rw = rewind === undefined ? undefined : rewindMiddleware(rewind);
  const made = createAgent({ model, tools: [note], middleware: rw === undefined ? [] : [rw] });
  const messages = Array.from({ length }, (_, at) => message(at));
  await (rw?.attach(made) ?? made).invoke(
    { messages },
    { configurable: { thread_id: "t" }, recursionLimit: 10 * turns + 50 },
  );
  await rewind?.close();
  return model.asked.between();
}

const wireMessages = () =>
  Array.from({ length }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content: text(at) }));

/** A thread of so many turns, whose list grows by one message with each. */
async function grow() {
  const rewind = await open();
  const thread = rewind.thread("t", { serializer: langchainSerializer });
  const messages = [];
  const result = { turns: [], bytes: [] };
  for (let turn = 0; turn < turns; turn++) {
    messages.push(message(turn));
    const start = performance.now();
    const begun = await thread.beginTurn({ messages: [...messages] }, { anchor: `at ${turn}` });
    const { timings } = await begun.gate({ tools: false });
    result.turns.push(performance.now() - start);
    result.bytes.push(timings.bytes);
  }
  await rewind.close();
  return result;
}

/** Opens what `grow` has left, until the next turn's checkpoint is made: of the same list and one message more. */
async function reopen() {
  const messages = Array.from({ length: length + 1 }, (_, at) => message(at));
  const result = { turns: [], opened: [] };
  for (let turn = 0; turn < turns; turn++) {
    const start = performance.now();
    const rewind = await open();
    const thread = rewind.thread("t", { serializer: langchainSerializer });
    thread.head;
    result.opened.push(performance.now() - start);
    const begun = await thread.beginTurn({ messages }, { anchor: `again ${turn}` });
    await begun.gate({ tools: false });
    result.turns.push(performance.now() - start);
    await rewind.close();
  }
  return result;
}

const openaiTool = { type: "function", function: { name: "note", parameters: { type: "object" } } };

/** A whole loop over OpenAI's client, whose server answers in the same process. */
async function openai(rewind) {
  const asked = marks();
  const answer = async (_url, { body }) => {
    asked.mark();
    // As a transport does.
    Buffer.from(body);
    await sleep(modelMs);
    const call = { id: `c${asked.count()}`, type: "function", function: { name: "note", arguments: '{"text":"n"}' } };
    const reply = { role: "assistant", content: null, tool_calls: [call] };
    const choices = [{ index: 0, finish_reason: "tool_calls", message: reply }];
    return Response.json({ id: call.id, object: "chat.completion", created: 0, model: "m", choices });
  };
  const plain = new OpenAI({ apiKey: "none", baseURL: "http://localhost/v1", fetch: answer });
  const client = rewind === undefined ? plain : withRewind(plain, rewind, { thread: "t" });
  const messages = wireMessages();
  for (let turn = 0; turn <= turns; turn++) {
    const { choices } = await client.chat.completions.create({ model: "m", messages, tools: [openaiTool] });
    const [{ message: reply }] = choices;
    messages.push(reply, { role: "tool", tool_call_id: reply.tool_calls[0].id, content: text(turn) });
  }
  await rewind?.close();
  return asked.between();
}

/** What parsing a request's body and writing it again takes. */
async function json() {
  const messages = wireMessages();
  const asked = { turns: [], cpu: [] };
  for (let turn = 0; turn < turns; turn++) {
    messages.push({ role: "user", content: text(turn) });
    const body = JSON.stringify({ model: "m", messages, tools: [openaiTool] });
    const before = process.cpuUsage();
    asked.turns.push(await timed(() => Buffer.from(JSON.stringify(JSON.parse(body)))));
    asked.cpu.push(cpuSince(before));
    await sleep(modelMs / 3);
  }
  return asked;
}

const arms = {
  agentrewind: checkpoints,
  memory,
  sqlite,
  agent: () => agent(),
  "agent+agentrewind": async () => agent(await open()),
  grow,
  reopen,
  json,
  openai: () => openai(),
  "openai+agentrewind": async () => openai(await open()),
};
console.log(JSON.stringify(await arms[arm]()));
