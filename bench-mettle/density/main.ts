// The bench's command.
import { buildIfStale } from "../perf/build.ts";
import { parseOptions, usage } from "./options.ts";

async function main(args: readonly string[]): Promise<void> {
  const options = parseOptions(args);
  if (options === "help") {
    process.stdout.write(usage);
    return;
  }
  buildIfStale();
  // What it imports was just built.
  const { runDensity } = await import("./suite.ts");
  await runDensity(options, args);
}

await main(process.argv.slice(2)).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
