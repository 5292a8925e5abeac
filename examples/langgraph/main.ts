// node -C agentrewind-source --import tsx examples/langgraph/main.ts: the agent takes back a wrong step inside of its graph, then a person goes back with LangGraph.
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { startModelServer } from "agentrewind/conformance";
import { buildGraph } from "./graph.ts";
import { decide } from "./script.ts";

const folder = mkdtempSync(join(tmpdir(), "agentrewind-langgraph-"));
const workspace = join(folder, "repo");
mkdirSync(workspace);
const server = await startModelServer({ decide, latencyMs: 20 });
const rewind = await openRewind({ workspace, store: join(folder, "store") });
try {
  const { app, rg } = buildGraph(rewind, server.baseUrl);
  const config = { configurable: { thread_id: "t1" } };
  const tell = (what: string): void =>
    console.log(`${what}: ${readdirSync(workspace).sort().join(", ") || "no files"}`);

  const state = await app.invoke({ messages: [{ role: "user", content: "Write the report." }] }, config);
  tell(`The agent rewound and finished ("${state.messages.at(-1)?.text}")`);

  let early = config;
  for await (const { values, config: point } of app.getStateHistory(config)) {
    if (values.messages?.at(-1)?.text === "wrote notes.txt") early = point as typeof config;
  }
  await rg.checkout(early);
  tell("Files of an earlier state of LangGraph's");

  await app.invoke(null, early);
  tell("The run goes on from there");
} finally {
  await rewind.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
}
