// The example runs as it stands, without network.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("examples/langgraph", async () => {
  const root = join(import.meta.dirname, "../..");
  const tsx = join(root, "node_modules/tsx/dist/esm/index.mjs");
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["-C", "agentrewind-source", "--import", tsx, "examples/langgraph/main.ts"],
    { cwd: root },
  );
  expect(stdout.trim().split("\n")).toEqual([
    'The agent rewound and finished ("The report is written."): notes.txt, report.txt',
    "Files of an earlier state of LangGraph's: notes.txt",
    "The run goes on from there: notes.txt, report.txt",
  ]);
});
