// glob and grep for a deepagents backend, by the environment's own find and grep; neither follows links.
import type { Environment } from "agentrewind";
import type { FileInfo, GlobResult, GrepMatch, GrepResult } from "deepagents";
import picomatch from "picomatch";
import { toBackend } from "./paths.ts";

const timeoutMs = 60_000;
/** What is kept of their output: past it, the search stops and says so. */
const maxBytes = 8 << 20;

/** @param folder relative to the workspace */
export async function globFiles(environment: Environment, pattern: string, folder: string): Promise<GlobResult> {
  const base = folder === "" ? "./" : `./${folder}/`;
  const found = await environment.exec(["find", base, "-type", "f", "-print0"], { timeoutMs, maxBytes });
  const matches = picomatch(pattern.replace(/^\/+/, ""), { dot: true });
  const files: FileInfo[] = [];
  const complete = found.stdout.slice(0, found.stdout.lastIndexOf("\0") + 1);
  for (const name of complete.split("\0")) {
    const inside = name.slice(base.length);
    if (inside !== "" && matches(inside)) files.push({ path: toBackend(name.slice(2)), is_dir: false });
  }
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { files, ...(found.truncated || found.timedOut ? { truncated: true } : {}) };
}

/** Lines with the text `pattern`, as it stands. @param folder relative to the workspace */
export async function grepFolder(
  environment: Environment,
  pattern: string,
  folder: string,
  glob: string | null,
  maxCount: number | null,
): Promise<GrepResult> {
  const base = folder === "" ? "./" : `./${folder}/`;
  const command = ["grep", "-rHnIFZ", "-e", pattern, "--", base];
  const found = await environment.exec(command, { timeoutMs, maxBytes });
  const stopped = found.truncated || found.timedOut;
  if (!stopped && found.exitCode !== null && found.exitCode > 1 && found.stdout === "") {
    return { error: `grep: ${found.stderr.trim()}` };
  }
  const wanted =
    glob === null ? () => true : picomatch(glob.replace(/^\/+/, ""), { dot: true, basename: !glob.includes("/") });
  const matches: GrepMatch[] = [];
  for (const [name, line, text] of hits(found.stdout)) {
    if (!wanted(name.slice(2))) continue;
    if (maxCount !== null && matches.length === maxCount) return { matches, truncated: true };
    matches.push({ path: toBackend(name.slice(2)), line, text });
  }
  return { matches, ...(stopped ? { truncated: true } : {}) };
}

/** The same in one file's text. */
export function grepText(path: string, text: string, pattern: string, maxCount: number | null): GrepResult {
  const found = text
    .split("\n")
    .flatMap((line, index) => (line.includes(pattern) ? [{ path, line: index + 1, text: line }] : []));
  if (maxCount === null || found.length <= maxCount) return { matches: found };
  return { matches: found.slice(0, maxCount), truncated: true };
}

/** `NAME NUL LINE:TEXT` lines; a last one that was cut is left out. */
function* hits(output: string): Generator<readonly [string, number, string]> {
  for (let at = 0; ; ) {
    const name = output.indexOf("\0", at);
    const end = name < 0 ? -1 : output.indexOf("\n", name);
    if (end < 0) return;
    const colon = output.indexOf(":", name);
    yield [output.slice(at, name), Number(output.slice(name + 1, colon)), output.slice(colon + 1, end)];
    at = end + 1;
  }
}
