// One engine for all workspaces that a process has open in a store.
import { defaultLimits, type Engine, type EngineLimits, type KindLimits } from "./engine.ts";
import { SharedEngine } from "./shared.ts";

/** Each limit that is not given is the default one. */
export interface GivenLimits {
  readonly capture?: Partial<KindLimits> | undefined;
  readonly persist?: Partial<KindLimits> | undefined;
}

export function limitsOf({ capture, persist }: GivenLimits): EngineLimits {
  const usual = defaultLimits();
  return { capture: { ...usual.capture, ...capture }, persist: { ...usual.persist, ...persist } };
}

const shared = new Map<string, { readonly engine: SharedEngine; users: number }>();

/**
 * Never fails and never waits: where the lease cannot be had and nobody grants, this process goes on by its own limits, and tries again.
 * @param folder of the store's locks
 * @param limits in force where this process opens the store first
 */
export function openEngine(folder: string, limits: EngineLimits): Engine {
  const found = shared.get(folder) ?? { engine: new SharedEngine(folder, limits), users: 0 };
  shared.set(folder, found);
  found.users++;
  const { engine } = found;
  let open = true;
  return {
    run: (request, work) => engine.run(request, work),
    hurry: (environment) => engine.hurry(environment),
    room: (environment, waiting) => engine.room(environment, waiting),
    async close() {
      if (!open) return;
      open = false;
      if (--found.users > 0) return;
      shared.delete(folder);
      await engine.close();
    },
  };
}
