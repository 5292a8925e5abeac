// The bench's command.
import { runCommand } from "../command.ts";
import { parseOptions, usage } from "./options.ts";

await runCommand(usage, parseOptions, async (options, args) => {
  // What it imports was just built.
  const { runDensity } = await import("./suite.ts");
  await runDensity(options, args);
});
