// The adapter suite: loops of every framework over a real model server, a real workspace and a real store must behave equally.

import { outsideChecks } from "./adapter-outside.ts";
import { refusalChecks } from "./adapter-refusals.ts";
import { rewindChecks } from "./adapter-rewind.ts";
import { type AdapterCheck, type AdapterInitializer, openScene } from "./adapter-scene.ts";
import type { ConformanceTest } from "./test.ts";

/** All tests for the adapter that `initializer` drives. Each has a workspace, a store and a model server of its own. */
export function adapterSuite(initializer: AdapterInitializer): ConformanceTest[] {
  const checks: readonly AdapterCheck[] = [...rewindChecks, ...refusalChecks, ...outsideChecks];
  return checks.map(({ name, script, check, options }) => ({
    name,
    async run() {
      const scene = await openScene(script, options, initializer.toolName);
      try {
        await check(scene, await initializer.start(scene));
      } catch (error) {
        await scene.close().catch(() => {});
        throw error;
      }
      await scene.close();
    },
  }));
}
