// What becomes of processes whose memory is not kept: they are started again from what is recorded of them, or stay ended. Each is named.
import type { Problem } from "../../environment.ts";
import {
  commandOf,
  endedAtOnce,
  environmentOf,
  nameOf,
  notKept,
  obstacleOf,
  relaunched,
  watchedMs,
} from "../../processes/start-again.ts";
import type { Life } from "../life.ts";
import type { ImageProcess } from "./image-store.ts";

/** What happens at a rewind to processes that cannot come back with their memory. */
export type WithoutMemory = "relaunch" | "stop";

/** Who starts them inside. */
const self = { user: 0, group: 0 };

/** Those that a person or a model knows of: what these have started themselves comes and goes with them. */
const isKnown = ({ role }: ImageProcess): boolean => role !== "root" && role !== "inner";

/** Null where it can be started again. */
function obstacle(process: ImageProcess): string | null {
  if (process.role === "shell") return "its variables, functions and jobs are gone, the next command gets a new one";
  if (process.role === "subshell") return "it was a part of a shell, whose program was in its memory only";
  return obstacleOf(process);
}

/** Null where it is started again. */
function against(process: ImageProcess, how: WithoutMemory): string | null {
  if (how === "stop") return notKept;
  const reason = obstacle(process);
  return reason === null ? null : `stopped: ${reason}`;
}

/** Said at the capture. `why`: why their memory is not kept. */
export const foretold = (processes: readonly ImageProcess[], how: WithoutMemory, why: string): Problem[] =>
  processes.filter(isKnown).map((one) => {
    const reason = obstacle(one);
    const fate =
      how === "relaunch" && reason === null ? "starts it again, without its memory" : "does not bring it back";
    return { path: nameOf(one), reason: `${why}: a rewind ${fate}` };
  });

/** Starts again what can be, in the order in which it was started first. Says of each what has become of it. */
export async function startAgain(
  life: Life,
  processes: readonly ImageProcess[],
  how: WithoutMemory,
): Promise<Problem[]> {
  const fates = processes.filter(isKnown).map(async (one): Promise<Problem> => {
    const reason = against(one, how);
    if (reason !== null) return { path: nameOf(one), reason };
    const request = { argv: commandOf(one, self), env: environmentOf(one), cwd: one.cwd };
    const end = await life.commands.launch(request, watchedMs);
    return { path: nameOf(one), reason: end === null ? relaunched : endedAtOnce(end) };
  });
  return Promise.all(fates);
}

/** The same without doing it. */
export const wouldStart = (processes: readonly ImageProcess[], how: WithoutMemory): Problem[] =>
  processes.filter(isKnown).map((one) => ({ path: nameOf(one), reason: against(one, how) ?? relaunched }));
