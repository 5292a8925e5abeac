// The command of a bench whose work is imported when the package has been built.
import { buildIfStale } from "./perf/build.ts";

/** @param parse throws an Error with a sentence that names the option */
export async function runCommand<Options>(
  usage: string,
  parse: (args: readonly string[]) => Options | "help",
  run: (options: Options, args: readonly string[]) => Promise<unknown>,
): Promise<void> {
  const args = process.argv.slice(2);
  try {
    const options = parse(args);
    if (options === "help") {
      process.stdout.write(usage);
      return;
    }
    buildIfStale();
    await run(options, args);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
