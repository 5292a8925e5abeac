// `checkpoint`: the pair as it is now.
import type { FileChanges } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import type { Activity, Checkpoint } from "../session/types.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine, safe } from "../text/safe.ts";
import { plural } from "../text/words.ts";
import { countChanges } from "./changes.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { give } from "./writer.ts";

export async function checkpoint(global: Global, { label }: { readonly label?: string }): Promise<Output> {
  const made = await makeCheckpoint(global, label === undefined ? {} : { label });
  return { json: made, text: (paint) => madeLines(made, paint) };
}

/** @throws CAPTURE_FAILED when the environment could not be captured */
export async function makeCheckpoint(
  global: Global,
  options: { readonly label?: string; readonly activity?: Activity },
): Promise<Checkpoint> {
  const made = await give<Checkpoint>(global, {
    command: "checkpoint",
    arguments: options,
    here: (thread) => thread.checkpoint(options),
    begins: true,
  });
  if (made.state !== "not-restorable") return made;
  const reason = made.reason ?? "the environment could not be captured";
  throw new RewindError("CAPTURE_FAILED", `${made.id} holds no files: ${reason.replace(/\.$/, "")}.`, {
    hint: "Mend what is named and make the checkpoint again.",
    details: { checkpoint: made.id },
  });
}

export function madeLines(made: Checkpoint, paint: Paint): string[] {
  const label = made.label === null ? "" : ` "${oneLine(made.label)}"`;
  const lines = [
    `${paint("bold", made.id)}${label} of thread ${oneLine(made.thread)}${sinceParent(made.parent, made.changes)}`,
  ];
  if (made.problems.length > 0) {
    lines.push(paint("yellow", `${plural(made.problems.length, "path")} not fully captured:`));
    for (const problem of made.problems) lines.push(`  ${safe(problem.path)}: ${oneLine(problem.reason)}`);
  }
  return lines;
}

function sinceParent(parent: string | null, changes: FileChanges | null): string {
  if (parent === null || changes === null) return "";
  const count = countChanges(changes);
  return count === 0 ? `, nothing changed since ${parent}` : `, ${plural(count, "path")} changed since ${parent}`;
}
