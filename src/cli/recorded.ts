// What readers share: the store opened for reading, the thread that is meant, and what is said when there is none.
import { RewindError } from "../errors.ts";
import { openReader, type Reader, type ReadThread, type Recorded, readableWorkspace } from "../reader.ts";
import type { Global } from "./global.ts";

/** Name of the thread that a workspace without one gets. */
export const newThread = "cli";

/** Runs `work` on the store, undefined where there is none. */
export async function withReader<T>(
  { store, workspace }: Pick<Global, "store" | "workspace">,
  work: (reader: Reader | undefined, workspace: string) => Promise<T> | T,
): Promise<T> {
  const path = readableWorkspace(workspace, store);
  const reader = openReader(store, path);
  try {
    return await work(reader, path);
  } finally {
    reader?.close();
  }
}

/** Runs `work` on the thread that is meant. @throws NO_THREAD */
export function withThread<T>(
  global: Global,
  work: (thread: ReadThread, recorded: Recorded) => Promise<T> | T,
): Promise<T> {
  return withReader(global, (reader, workspace) => {
    const recorded = reader?.recorded;
    if (recorded === undefined) throw nothingRecorded(global, workspace, reader !== undefined);
    return work(recorded.thread(chooseThread(recorded, global.thread)), recorded);
  });
}

/** @throws NO_THREAD when `asked` is not there */
export function chooseThread(recorded: Recorded, asked: string | undefined): string {
  const names = recorded.threads();
  if (asked === undefined) return names[0] ?? newThread;
  if (names.includes(asked)) return asked;
  throw new RewindError("NO_THREAD", `There is no thread "${asked}" in this workspace.`, {
    hint:
      names.length === 0
        ? "There is none yet."
        : `There is ${names
            .slice(0, 8)
            .map((name) => `"${name}"`)
            .join(", ")}.`,
  });
}

export function nothingRecorded(global: Global, workspace: string, hasStore: boolean): RewindError {
  return new RewindError("NO_THREAD", nothingSentence(global, workspace, hasStore), {
    hint: "Make a checkpoint first, or name another --workspace or --store.",
  });
}

export const nothingSentence = ({ store }: Global, workspace: string, hasStore: boolean): string =>
  hasStore ? `Nothing is recorded of ${workspace}.` : `There is no store at ${store}, so nothing is recorded.`;
