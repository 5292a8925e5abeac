// The environment suite: every sentence of the implementer's contract as a test on a fresh environment.
import { captureChecks } from "./environment-capture.ts";
import type { EnvironmentInitializer } from "./environment-check.ts";
import { commandChecks } from "./environment-commands.ts";
import { fileChecks } from "./environment-files.ts";
import { forkChecks } from "./environment-fork.ts";
import { partialChecks } from "./environment-partial.ts";
import { programChecks } from "./environment-programs.ts";
import { restoreChecks } from "./environment-restore.ts";
import type { ConformanceTest } from "./test.ts";

/**
 * All tests for the environments that `initializer` makes. What `capabilities` says is missing is not asked for: `lacks` is searched
 * for "times", "modes", "symbolic links", "hard links" and "FIFOs".
 */
export function environmentSuite(initializer: EnvironmentInitializer): ConformanceTest[] {
  const checks = [
    ...captureChecks,
    ...restoreChecks,
    ...partialChecks,
    ...forkChecks,
    ...fileChecks,
    ...commandChecks,
    ...programChecks,
  ];
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
