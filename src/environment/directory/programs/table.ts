// What a checkpoint tells of the programs that ran (F-50).
import { z } from "zod";
import { RewindError } from "../../../errors.ts";
import type { Objects } from "../../../store/objects.ts";
import type { ProgramPolicy } from "./policy.ts";
import { programPolicies } from "./policy.ts";
import { keyOf, type RecordedProgram, type Run } from "./run.ts";
import { recordedProgram } from "./run-notes.ts";

export interface ProgramTable {
  /** The environment in which they ran. */
  readonly environment: string;
  /** What the recorder wanted done with them. */
  readonly policy: ProgramPolicy;
  readonly runs: readonly RecordedRun[];
}

export interface RecordedRun {
  readonly id: string;
  /** Somebody waited for the command. */
  readonly waited: boolean;
  readonly programs: readonly RecordedProgram[];
}

const schema: z.ZodType<ProgramTable> = z.object({
  environment: z.string(),
  policy: z.enum(programPolicies),
  runs: z.array(z.object({ id: z.string(), waited: z.boolean(), programs: z.array(recordedProgram) })),
});

/** Equal for equal states: in an order of its own. Null where nothing runs. */
export function encodeTable(environment: string, policy: ProgramPolicy, runs: Iterable<Run>): Buffer | null {
  const recorded = [...runs]
    .filter(({ programs }) => programs.length > 0)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, waiter, programs }): RecordedRun => {
      const about = programs.map((one) => one.about).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
      return { id, waited: waiter !== null, programs: about };
    });
  if (recorded.length === 0) return null;
  return Buffer.from(JSON.stringify({ environment, policy, runs: recorded } satisfies ProgramTable));
}

/** @throws STORE_CORRUPT, NOT_RESTORABLE */
export function readTable(objects: Objects, name: string): ProgramTable {
  if (!/^[0-9a-f]{64}$/.test(name)) throw notThere();
  const hash = Buffer.from(name, "hex");
  if (!objects.has(hash)) throw notThere();
  const parsed = schema.safeParse(JSON.parse(objects.get(hash).toString("utf8")));
  if (parsed.success) return parsed.data;
  throw new RewindError("STORE_CORRUPT", "What is stored of the programs of this checkpoint cannot be read.", {
    hint: "Run `agentrewind verify` to see which checkpoints are affected, and rewind to another one.",
    details: { object: name },
  });
}

const notThere = (): RewindError =>
  new RewindError("NOT_RESTORABLE", "What this checkpoint tells of running programs is not in the store.", {
    hint: "Choose another checkpoint.",
  });
