// What a turn of a long conversation costs: with AgentRewind, and what LangGraph's own savers take for the same messages. One JSON object a line.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { openRewind } from "agentrewind";
import { langchainSerializer } from "agentrewind/langchain";

const lengths = [10, 100, 1_000, 10_000];
const turns = 40;
const warmUp = 10;

const message = (at) => {
  const content = `message ${at} ${"x".repeat(200)}`;
  return at % 2 === 0 ? new HumanMessage({ id: `m${at}`, content }) : new AIMessage({ id: `m${at}`, content });
};

const quantile = (list, q) => {
  const sorted = list.slice(warmUp).sort((a, b) => a - b);
  return Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))].toFixed(3));
};

const timed = async (work) => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

const base = mkdtempSync(join(tmpdir(), "agentrewind-turns-"));
mkdirSync(join(base, "work"));
const rewind = await openRewind({ workspace: join(base, "work"), store: join(base, "store"), inspector: "scan" });
for (const length of lengths) {
  const thread = rewind.thread(`t${length}`, { serializer: langchainSerializer });
  const savers = { memory: new MemorySaver(), sqlite: SqliteSaver.fromConnString(join(base, `${length}.db`)) };
  const times = { agentrewind: [], memory: [], sqlite: [] };
  const bytes = [];
  let messages = Array.from({ length }, (_, at) => message(at));
  for (let turn = 0; turn < turns; turn++) {
    messages = [...messages, message(length + turn)];
    let checkpoint;
    times.agentrewind.push(
      await timed(async () => {
        const begun = await thread.beginTurn({ messages: [...messages] }, { anchor: `at ${turn}` });
        checkpoint = await begun.gate({ tools: false });
        bytes.push(checkpoint.timings.bytes);
        void begun.durable;
      }),
    );
    const stored = {
      v: 4,
      id: `${turn}`.padStart(8, "0"),
      ts: new Date().toISOString(),
      channel_values: { messages },
      channel_versions: { messages: turn + 1 },
      versions_seen: {},
    };
    const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    for (const [name, saver] of Object.entries(savers)) {
      times[name].push(
        await timed(() =>
          saver.put(config, stored, { source: "loop", step: turn, parents: {} }, { messages: turn + 1 }),
        ),
      );
    }
  }
  const ms = Object.fromEntries(
    Object.entries(times).map(([name, list]) => [name, { p50: quantile(list, 0.5), p95: quantile(list, 0.95) }]),
  );
  console.log(JSON.stringify({ messages: length, ms, bytes: quantile(bytes, 0.5) }));
}
const ended = await timed(() => rewind.close());
const reopened = await openRewind({ workspace: join(base, "work"), store: join(base, "store"), inspector: "scan" });
console.log(JSON.stringify({ closeMs: Number(ended.toFixed(1)) }));
await reopened.close();
rmSync(base, { recursive: true, force: true });
