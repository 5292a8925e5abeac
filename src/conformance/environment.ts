// The environment suite: every sentence of the implementer's contract as a test on a fresh environment.
import type { Environment, Manifest } from "../environment/environment.ts";
import { captureChecks } from "./environment-capture.ts";
import { commandChecks } from "./environment-commands.ts";
import { fileChecks } from "./environment-files.ts";
import { restoreChecks } from "./environment-restore.ts";
import type { ConformanceTest } from "./test.ts";

export interface EnvironmentInitializer {
  readonly name: string;
  /** A new environment whose workspace is empty. It needs a shell with GNU find and coreutils. */
  create(): Promise<Environment>;
  /** The environment that was closed, opened again as another process would. */
  reopen?(closed: Environment): Promise<Environment>;
  /** Makes an object that only `manifest` needs missing from the store. */
  damage?(environment: Environment, manifest: Manifest): Promise<void>;
  /** Frees what `create` made; the environment may be closed already. */
  destroy?(environment: Environment): Promise<void>;
}

/** One check: gets an open environment and may exchange it (a check that reopens returns the new one). */
export interface EnvironmentCheck {
  readonly name: string;
  check(environment: Environment, initializer: EnvironmentInitializer): Promise<Environment | undefined>;
}

/**
 * All tests for the environments that `initializer` makes. What `capabilities` says is missing is not asked for: `lacks` is searched
 * for "times", "modes", "symbolic links", "hard links" and "FIFOs".
 */
export function environmentSuite(initializer: EnvironmentInitializer): ConformanceTest[] {
  const checks = [...captureChecks, ...restoreChecks, ...fileChecks, ...commandChecks];
  return checks.map(({ name, check }) => ({
    name,
    async run() {
      let environment = await initializer.create();
      try {
        environment = (await check(environment, initializer)) ?? environment;
      } finally {
        await environment.close();
        await initializer.destroy?.(environment);
      }
    },
  }));
}
