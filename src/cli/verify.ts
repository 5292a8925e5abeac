// `verify`: is everything there and whole that the checkpoints need?
import { RewindError } from "../errors.ts";
import type { Reader } from "../reader.ts";
import type { Finding } from "../session/verify.ts";
import { commandLine, type Global } from "./global.ts";
import type { Output } from "./output.ts";
import type { Paint } from "./paint.ts";
import { nothingRecorded, withReader } from "./recorded.ts";
import { oneLine } from "./safe.ts";
import { bytes, plural } from "./words.ts";
import { give } from "./writer.ts";

export function verify(global: Global): Promise<Output> {
  return withReader(global, async (reader, workspace) => {
    const recorded = reader?.recorded;
    if (recorded === undefined) throw nothingRecorded(global, workspace, reader !== undefined);
    // What a sandbox keeps lies where only its holder can look.
    const findings = recorded.kind === "sandbox" ? await askVerify(global) : await recorded.verify();
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

const askVerify = (global: Global): Promise<readonly Finding[]> =>
  give(global, { command: "verify", arguments: {}, here: (_, rewind) => rewind.verify(), begins: false });

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
