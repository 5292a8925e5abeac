// A list of work, done by several at a time and written down piece by piece, so that who is killed goes on where it was.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

export interface Work<T> {
  /** Names the piece; what is written down under it is not done again. */
  readonly name: string;
  readonly about: string;
  run(): Promise<T>;
}

interface Line<T> {
  readonly name: string;
  readonly result: T;
}

/** What the file holds by names; a line that a kill has cut off counts as not there. */
export function readLines<T>(file: string): Map<string, T> {
  const found = new Map<string, T>();
  if (!existsSync(file)) return found;
  for (const line of readFileSync(file, "utf8").split("\n")) {
    try {
      const { name, result } = JSON.parse(line) as Line<T>;
      found.set(name, result);
    } catch {}
  }
  return found;
}

/** Gives the results in the order of the work. What fails is told and left out. */
export async function doAll<T>(work: readonly Work<T>[], file: string, jobs: number): Promise<T[]> {
  const known = readLines<T>(file);
  // A cut line must not swallow the next one.
  if (known.size > 0) appendFileSync(file, "\n");
  const queue = work.filter(({ name }) => !known.has(name));
  const start = performance.now();
  let done = 0;
  const failed: string[] = [];
  const total = queue.length;
  const one = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { name, about, run } = next;
      try {
        const result = await run();
        known.set(name, result);
        appendFileSync(file, `${JSON.stringify({ name, result })}\n`);
      } catch (error) {
        failed.push(about);
        process.stderr.write(`${about}: ${(error as Error).stack}\n`);
      }
      done++;
      const left = ((performance.now() - start) / done) * (total - done);
      process.stderr.write(`${done}/${total}, ${Math.ceil(left / 60_000)} min left: ${about}\n`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, one));
  if (failed.length > 0) process.exitCode = 1;
  return work.flatMap(({ name }) => known.get(name) ?? []);
}
