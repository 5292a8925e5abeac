// How a process is started again from what is recorded of it.
import type { ProcessDescription } from "./description.ts";
import { named } from "./process-name.ts";

/** How long one that was started again is watched: what ends in this time is named. */
export const watchedMs = 200;

export const relaunched = "relaunched: its memory is not what it was";
export const endedAtOnce = (how: string): string => `it was started again, and ended at once (${how})`;
export const notKept = "stopped: processes are not kept";

/** Null where it can be started again. */
export function obstacleOf({ argv, streams }: Pick<ProcessDescription, "argv" | "streams">): string | null {
  if (argv.length === 0) return "its command is not known";
  if (streams.some((one) => /^(pipe|socket):/.test(one))) return "it was connected to another process";
  if (streams.some((one) => /^\/dev\/(pts\/|tty)/.test(one))) return "it ran in a terminal";
  return null;
}

export const nameOf = (one: {
  readonly pid: number;
  readonly command: string;
  readonly ports: readonly number[];
}): string => `${named(`${one.pid}`, one.command)}${one.ports.length === 0 ? "" : ` on port ${one.ports.join(", ")}`}`;

/** The streams are opened where the command runs, so that their paths mean what they meant. */
const launcher = 'umask "$1"; i=$2 o=$3 e=$4; shift 4; exec "$@" <"$i" >>"$o" 2>>"$e"';

/** @param self user and group as which the command is run */
export function commandOf(
  { argv, streams, umask, ids: [user, group, groups] }: ProcessDescription,
  self: { readonly user: number; readonly group: number },
): string[] {
  const paths = [0, 1, 2].map((fd) =>
    streams[fd]?.startsWith("/") && !deleted.test(streams[fd]) ? streams[fd] : "/dev/null",
  );
  const as =
    user === self.user && group === self.group
      ? []
      : [
          ...["setpriv", `--reuid=${user}`, `--regid=${group}`],
          groups.length === 0 ? "--clear-groups" : `--groups=${groups.join(",")}`,
          "--",
        ];
  return ["sh", "-c", launcher, "sh", umask, ...paths, ...as, ...argv];
}

const deleted = / \(deleted\)$/;

export const environmentOf = ({ env }: Pick<ProcessDescription, "env">): Record<string, string> =>
  Object.fromEntries(
    env
      .filter((one) => one.indexOf("=") > 0)
      .map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]),
  );
