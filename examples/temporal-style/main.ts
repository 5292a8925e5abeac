// Runs or resumes the workflow of a folder: node main.ts FOLDER MODEL_URL [OUTPUT_BYTES]. Kill it at any time and start it again.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { makeActivity } from "./agent.ts";
import { openJournal } from "./journal.ts";
import { runWorkflow } from "./workflow.ts";

const [folder = "", baseUrl = "", outputBytes = "51200"] = process.argv.slice(2);
const workspace = join(folder, "workspace");
mkdirSync(workspace, { recursive: true });

await using rewind = await openRewind({ workspace, store: join(folder, "store"), gate: "durable" });
const journal = openJournal(join(folder, "journal.jsonl"));
const activity = makeActivity({
  environment: rewind.environment,
  baseUrl,
  outputBytes: Number(outputBytes),
  window: 4,
});
const result = await runWorkflow({ rewind, journal, thread: "workflow", task: "Write the ledger.", activity });
console.log(JSON.stringify({ ...result, journalBytes: journal.bytes, findings: await rewind.verify() }));
journal.close();
