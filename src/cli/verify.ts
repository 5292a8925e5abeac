// `verify`: is everything there and whole that the checkpoints need?
import { RewindError } from "../errors.ts";
import type { Rewind } from "../opened.ts";
import { asFindings } from "../orphans.ts";
import type { Reader } from "../reader.ts";
import type { Thread } from "../session/thread.ts";
import type { Finding } from "../session/verify.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { bytes, plural } from "../text/words.ts";
import { commandLine, type Global } from "./global.ts";
import type { Output } from "./output.ts";
import { nothingRecorded, withReader } from "./recorded.ts";
import { give } from "./writer.ts";

export function verify(global: Global): Promise<Output> {
  return withReader(global, async (reader, workspace) => {
    const recorded = reader?.recorded;
    if (recorded === undefined) throw nothingRecorded(global, workspace, reader !== undefined);
    // What a sandbox keeps lies where only its holder can look.
    const findings = recorded.kind === "sandbox" ? await verifySandbox(global, reader) : await recorded.verify();
    const useless = await uselessLines(reader);
    return {
      json: findings,
      text: (paint) =>
        findings.length === 0
          ? [paint("green", "Sound: nothing is missing or damaged."), ...useless]
          : lines(findings, paint),
      ...(findings.length === 0 ? {} : { failure: unsound(global, findings) }),
    };
  });
}

/** What was left is looked for first: whoever opens the sandbox takes it up. */
async function verifySandbox(global: Global, reader: Reader | undefined): Promise<readonly Finding[]> {
  const left = asFindings((await reader?.orphans()) ?? []);
  const here = (_: Thread, rewind: Rewind): Promise<readonly Finding[]> => rewind.verify();
  const found = await give<readonly Finding[]>(global, { command: "verify", arguments: {}, here, begins: false });
  return [...left, ...found.filter(({ where }) => left.every((one) => one.where !== where))];
}

/** No fault, only room: what of the store nothing needs. */
async function uselessLines(reader: Reader | undefined): Promise<string[]> {
  try {
    const { packBytes, liveBytes, orphans } = (await reader?.survey()) ?? { packBytes: 0, liveBytes: 0, orphans: [] };
    const idle = packBytes - liveBytes;
    return [
      ...(idle > 0 ? [`${bytes(idle)} of the packs' ${bytes(packBytes)} are needed by no checkpoint.`] : []),
      ...(orphans.length > 0
        ? [`${plural(orphans.length, "file")} that a killed process left among the packs; gc removes them.`]
        : []),
    ];
  } catch {
    return [];
  }
}

const lines = (findings: readonly Finding[], paint: Paint): string[] =>
  findings.map(({ kind, where, problem }) => `${paint("red", kind)} ${oneLine(where)}: ${oneLine(problem)}`);

function unsound(global: Global, findings: readonly Finding[]): RewindError {
  const found = `verify found ${plural(findings.length, "problem")}.`;
  if (findings.every(({ kind }) => kind === "intent")) {
    return new RewindError("STORE_CORRUPT", found, {
      hint: `A rewind was interrupted; the next command that writes finishes it, for example ${commandLine(global, "checkpoint")}.`,
    });
  }
  if (findings.every(({ kind }) => kind === "orphan")) {
    return new RewindError("STORE_CORRUPT", found, {
      hint: `Killed processes left it; ${commandLine(global, "doctor --clean")} removes it. The checkpoints are whole.`,
    });
  }
  return new RewindError("STORE_CORRUPT", found, {
    hint: "Checkpoints that are not named are whole; the named ones cannot be relied on.",
  });
}
