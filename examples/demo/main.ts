// npm run demo [-- --json] [-- --keep]: an agent falls into a trap, takes the step back, and finishes its task.
import { parseArgs } from "node:util";
import { createPrinter } from "./print.ts";
import { runDemo } from "./run.ts";

try {
  const { values } = parseArgs({
    options: { json: { type: "boolean", default: false }, keep: { type: "boolean", default: false } },
  });
  const printer = createPrinter(console.log, process.stdout.isTTY === true && !process.env.NO_COLOR);
  const run = await runDemo({ keep: values.keep, ...(values.json ? {} : { tell: printer.tell }) });
  if (values.json) console.log(JSON.stringify(run.report));
  else printer.summary(run);
  if (values.keep) {
    const { workspace, store, thread } = run;
    console.error(`\nKept: npx agentrewind --workspace ${workspace} --store ${store} --thread ${thread} list --all`);
  }
  process.exitCode = run.report.testsPass ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? `The demo failed: ${error.message}` : error);
  process.exitCode = 1;
}
