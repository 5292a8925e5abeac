// What the checks of an environment share: a look at the tree from inside, and refusals by their code.
import assert from "node:assert/strict";
import type { Captured, Environment, FileChanges } from "../environment/environment.ts";
import { isRewindError } from "../errors.ts";

export const lacks = (environment: Environment, what: string): boolean =>
  environment.capabilities.lacks.some((one) => one.includes(what));

/** Runs a line of shell that must succeed. */
export async function shell(environment: Environment, command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await environment.exec(command);
  assert.equal(exitCode, 0, `${command}: ${stderr}`);
  return stdout;
}

export async function captured(environment: Environment): Promise<Captured> {
  const capture = environment.capture();
  const [result] = await Promise.all([capture.captured, capture.durable]);
  return result;
}

/** Every entry below the workspace as the tools see it: path, kind, mode, time, link target, names that share an inode, content. */
export async function look(environment: Environment): Promise<string[]> {
  const listing = await shell(
    environment,
    String.raw`find . -mindepth 1 -printf '%P\n%y %#m %T@ %i\n%l\0' | LC_ALL=C sort -z`,
  );
  const sums = await shell(environment, "find . -type f -exec sha256sum -z {} +");
  const content = new Map(
    sums
      .split("\0")
      .filter(Boolean)
      .map((line) => [line.slice(68), line.slice(0, 64)]),
  );
  const finest = lacks(environment, "times") ? -4 : undefined;
  const first = new Map<string, string>();
  return listing
    .split("\0")
    .filter(Boolean)
    .map((record) => {
      const fields = /^([\s\S]*)\n(\S) (\S+) (\S+) (\S+)\n([\s\S]*)$/.exec(record);
      assert(fields !== null, `find printed ${JSON.stringify(record)}`);
      const [, path = "", kind = "", mode = "", time = "", inode = "", target = ""] = fields;
      const owner = first.get(inode) ?? path;
      first.set(inode, owner);
      return JSON.stringify([
        path,
        kind,
        lacks(environment, "modes") ? "" : mode,
        time.slice(0, finest),
        target,
        kind === "d" || lacks(environment, "hard links") ? "" : owner,
        content.get(path) ?? "",
      ]);
    });
}

/** The rejection, which must be a RewindError. */
export async function refusal(promise: Promise<unknown>, what: string): Promise<string> {
  const [settled] = await Promise.allSettled([promise]);
  if (settled.status === "fulfilled") return assert.fail(`${what} should have been refused`);
  assert(isRewindError(settled.reason), `${what} must be refused with a RewindError, not ${String(settled.reason)}`);
  return settled.reason.code;
}

export const noChanges: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

/** Makes `before` with shell, captures it, makes `after`, restores, and compares with what was. */
export async function roundTrip(environment: Environment, before: string, after: string): Promise<void> {
  await shell(environment, before);
  const wanted = await look(environment);
  const { manifest } = await captured(environment);
  await shell(environment, after);
  assert.notDeepEqual(await look(environment), wanted, "the check itself must change something");
  const { notRestored } = await environment.restore(manifest);
  assert.deepEqual(await look(environment), wanted);
  assert.deepEqual(notRestored, []);
}
