// The suite's command.
import { runCommand } from "../command.ts";
import { parseOptions, usage } from "./options.ts";

await runCommand(usage, parseOptions, async (options, args) => {
  // What it imports was just built.
  const { runSuite } = await import("./suite.ts");
  await runSuite(options, args);
});
