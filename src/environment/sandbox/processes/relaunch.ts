// What becomes of processes whose memory is not kept: they are started again from what is recorded of them, or stay ended. Each is named.
import type { Problem } from "../../environment.ts";
import type { Life } from "../life.ts";
import type { ImageProcess } from "./image-store.ts";
import { named } from "./process-name.ts";

/** What happens at a rewind to processes that cannot come back with their memory. */
export type WithoutMemory = "relaunch" | "stop";

/** How long one that was started again is watched: what ends in this time is named. */
const watchedMs = 200;

/** The streams are opened inside, where their paths mean what they meant. */
const launcher = 'umask "$1"; i=$2 o=$3 e=$4; shift 4; exec "$@" <"$i" >>"$o" 2>>"$e"';

/** Those that a person or a model knows of: what these have started themselves comes and goes with them. */
const isKnown = ({ role }: ImageProcess): boolean => role !== "root" && role !== "inner";

/** Null where it can be started again. */
function obstacle({ role, argv, streams }: ImageProcess): string | null {
  if (role === "shell") return "its variables, functions and jobs are gone, the next command gets a new one";
  if (role === "subshell") return "it was a part of a shell, whose program was in its memory only";
  if (argv.length === 0) return "its command is not known";
  if (streams.some((one) => /^(pipe|socket):/.test(one))) return "it was connected to another process";
  if (streams.some((one) => /^\/dev\/(pts\/|tty)/.test(one))) return "it ran in a terminal";
  return null;
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
    const against = how === "stop" ? "processes are not kept" : obstacle(one);
    if (against !== null) return { path: nameOf(one), reason: `stopped: ${against}` };
    const request = { argv: commandOf(one), env: environmentOf(one), cwd: one.cwd };
    const end = await life.commands.launch(request, watchedMs);
    return {
      path: nameOf(one),
      reason: end === null ? relaunched : `it was started again, and ended at once (${end})`,
    };
  });
  return Promise.all(fates);
}

/** The same without doing it. */
export const wouldStart = (processes: readonly ImageProcess[], how: WithoutMemory): Problem[] =>
  processes.filter(isKnown).map((one) => {
    const against = how === "stop" ? "processes are not kept" : obstacle(one);
    return { path: nameOf(one), reason: against === null ? relaunched : `stopped: ${against}` };
  });

const relaunched = "relaunched: its memory is not what it was";

const nameOf = ({ pid, command, ports }: ImageProcess): string =>
  `${named(`${pid}`, command)}${ports.length === 0 ? "" : ` on port ${ports.join(", ")}`}`;

function commandOf({ argv, streams, umask, ids: [user, group, groups] }: ImageProcess): string[] {
  const paths = [0, 1, 2].map((fd) =>
    streams[fd]?.startsWith("/") && !deleted.test(streams[fd]) ? streams[fd] : "/dev/null",
  );
  const as =
    user === 0 && group === 0
      ? []
      : [
          ...["setpriv", `--reuid=${user}`, `--regid=${group}`],
          groups.length === 0 ? "--clear-groups" : `--groups=${groups.join(",")}`,
          "--",
        ];
  return ["sh", "-c", launcher, "sh", umask, ...paths, ...as, ...argv];
}

const deleted = / \(deleted\)$/;

const environmentOf = ({ env }: ImageProcess): Record<string, string> =>
  Object.fromEntries(
    env
      .filter((one) => one.indexOf("=") > 0)
      .map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]),
  );
