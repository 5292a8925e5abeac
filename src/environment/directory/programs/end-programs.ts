// Ends everything that commands have left running in an environment which goes.
import { join } from "node:path";
import { removeTree } from "../../../store/io.ts";
import { endProcesses } from "./end.ts";
import { openSeeing } from "./see.ts";
import { ProgramTracker } from "./tracker.ts";

/** @param folder where the notes of all environments lie. The caller holds the environment's lock. */
export async function endPrograms(folder: string, environment: string): Promise<void> {
  const notes = join(folder, environment);
  const see = openSeeing();
  const tracker = new ProgramTracker(environment, notes, see);
  await endProcesses(see, async () => (await tracker.look()).flatMap(({ processes }) => processes));
  await removeTree(notes);
}
