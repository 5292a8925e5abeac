// The composition root of environments: which one an openRewind means, and what it is given.
import { join } from "node:path";
import { openDirectory } from "./environment/directory/directory.ts";
import type { DirectorySettings } from "./environment/directory/programs/policy.ts";
import type { Environment } from "./environment/environment.ts";
import { openSandbox } from "./environment/sandbox/open.ts";
import type { SandboxOptions } from "./environment/sandbox/options.ts";
import { RewindError } from "./errors.ts";
import { openActivity } from "./inspector/ebpf/activity.ts";
import type { Store } from "./store/store.ts";

export interface ChosenEnvironment {
  readonly environment: "directory" | "auto" | "sandbox" | Environment;
  readonly directory: DirectorySettings;
  readonly sandbox: SandboxOptions;
  readonly inspector: "auto" | "scan" | "ebpf";
  /** Set where it is only observed. */
  readonly observe?: object | undefined;
  readonly exclude: readonly string[];
}

export const kindOf = ({ environment }: ChosenEnvironment): string => {
  if (typeof environment === "object") return environment.kind;
  return environment === "sandbox" ? "sandbox" : "directory";
};

/** Whether connections to elsewhere are seen. */
export const seesContacts = ({ environment, inspector }: ChosenEnvironment): boolean =>
  typeof environment === "object"
    ? environment.contacts !== undefined
    : environment === "sandbox" && inspector === "ebpf";

export interface EnvironmentPlace extends ReturnType<Store["open"]> {
  readonly store: Store;
  readonly workspace: string;
  readonly id: string;
}

export async function openEnvironment(
  { store, workspace, id, objects, catalog: { raiseGeneration, isHeld } }: EnvironmentPlace,
  chosen: ChosenEnvironment,
): Promise<Environment> {
  const { inspector } = chosen;
  if (inspector === "ebpf" && chosen.environment !== "sandbox") throw onlySandboxes();
  if (typeof chosen.environment === "object") return chosen.environment;
  if (chosen.environment === "sandbox") {
    const activity = inspector === "ebpf" ? await openActivity() : undefined;
    const observes = chosen.observe !== undefined;
    const place = { ...chosen.sandbox, observes, workspace, store: store.layout.root, id, objects, raiseGeneration };
    try {
      return await openSandbox({ ...place, inspector: inspector === "scan" ? "scan" : "auto", activity });
    } catch (error) {
      activity?.close();
      throw error;
    }
  }
  const { processes } = chosen.directory;
  return openDirectory({
    root: workspace,
    objects,
    id,
    exclude: chosen.exclude,
    watches: chosen.inspector === "auto",
    cacheFile: join(store.layout.cache, `${id}.tree`),
    isHeld,
    raiseGeneration,
    forks: join(`${store.layout.root}-branches`, id),
    ...(processes === "ignore" ? {} : { programs: { folder: store.layout.programs, policy: processes } }),
  });
}

const onlySandboxes = (): RewindError =>
  new RewindError("BAD_ARGUMENT", 'inspector: "ebpf" is for environment: "sandbox".', {
    hint: 'Leave it out: a directory is watched with "auto", where the machine can.',
  });
