// Puts a private copy of a program in its place: downloaded, unpacked and tried in a folder of its own, then renamed.
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { AptError, suites } from "./apt.mjs";

const draft = ".new-";
const abandonedMs = 3_600_000;

/** An answer as of `find`, with `from`: the suite. `found` is why there is none yet. */
export async function obtain(tool, found, folder) {
  if (process.platform !== "linux") return { ...found, from: null };
  if (process.getuid?.() !== 0) return { ...found, from: null };
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeAbandoned(folder);
  const reasons = [found.reason];
  let list = [];
  try {
    list = suites(tool.newer);
  } catch (error) {
    reasons.push(said(error));
  }
  for (const suite of list) {
    const work = join(folder, `${draft}${randomUUID()}`);
    mkdirSync(work, { mode: 0o700 });
    try {
      const reason = await take(tool, suite, work, folder);
      if (reason === null) return { ...(await tool.find({ folder, privateOnly: true })), from: suite.name };
      reasons.push(reason);
    } catch (error) {
      reasons.push(said(error));
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return { ...found, reason: reasons.join("; "), from: null };
}

/** Null when it is in its place, else why not. */
async function take(tool, suite, work, folder) {
  const version = suite.candidate(tool.package, work);
  if (version === null) return `${suite.name} has none`;
  if (!tool.isEnough(version)) return `${suite.name} has ${version}`;
  const name = `${tool.package}-${version}`;
  suite.unpack(tool.package, work, join(work, name));
  const tried = await tool.find({ folder: work, privateOnly: true });
  if (tried.tool === null) return `${suite.name} has ${tried.reason.replaceAll(`${work}/`, "")}`;
  place(join(work, name), join(folder, name));
  return null;
}

function said(error) {
  if (error instanceof AptError) return error.message;
  throw error;
}

/** What another one has put there meanwhile is as good. */
function place(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

/** A kill leaves its folder behind; one that is at work does not take that long. */
function removeAbandoned(folder) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (name.startsWith(draft) && age > abandonedMs) rmSync(path, { recursive: true, force: true });
  }
}
