// Checks of `fork`, where `capabilities.fork` is true.
import assert from "node:assert/strict";
import type { ForkedEnvironment } from "../environment/environment.ts";
import type { EnvironmentCheck } from "./environment-check.ts";
import { captured, look, refusal, shell } from "./environment-tools.ts";

const setup =
  "mkdir -p tree/in hollow; echo 1 > tree/f; ln tree/f tree/in/same; ln -s tree/f link; echo 1 > shut; chmod 640 shut; " +
  "truncate -s 2M sparse; printf x | dd of=sparse bs=1 seek=1000000 conv=notrunc 2>/dev/null; touch -d '2020-01-02 03:04:05.5' tree/in shut";

async function discard(forks: readonly ForkedEnvironment[]): Promise<void> {
  for (const fork of forks) {
    await fork.close();
    await fork.discard();
  }
}

export const forkChecks: readonly EnvironmentCheck[] = [
  {
    name: "forks are equal to the state, whatever the environment holds now",
    async check(environment) {
      if (!environment.capabilities.fork) return undefined;
      await shell(environment, setup);
      const wanted = await look(environment);
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > tree/f; rm -r hollow; echo 2 > later");
      const now = await look(environment);
      const blocks = await shell(environment, "stat -c %b sparse");
      const forks = (await environment.fork?.(manifest, 3)) ?? [];
      try {
        assert.equal(forks.length, 3);
        for (const fork of forks) {
          assert.deepEqual(await look(fork), wanted);
          assert.deepEqual(fork.notRestored, []);
          assert.deepEqual((await captured(fork)).manifest, manifest);
          assert.equal(await shell(fork, "stat -c %b sparse"), blocks);
        }
        assert.deepEqual(await look(environment), now);
      } finally {
        await discard(forks);
      }
      return undefined;
    },
  },
  {
    name: "a write in a fork is seen in no other, and not in the environment",
    async check(environment) {
      if (!environment.capabilities.fork) return undefined;
      await shell(environment, "echo 1 > shared; echo 1 > appended");
      const wanted = await look(environment);
      const { manifest } = await captured(environment);
      const forks = (await environment.fork?.(manifest, 2)) ?? [];
      const [one, two] = forks as [ForkedEnvironment, ForkedEnvironment];
      try {
        await shell(one, "printf 2 | dd of=shared conv=notrunc 2>/dev/null; echo 2 >> appended; echo 2 > own");
        assert.deepEqual(await look(two), wanted);
        assert.deepEqual(await look(environment), wanted);
        await one.restore(manifest);
        assert.deepEqual(await look(one), wanted);
      } finally {
        await discard(forks);
      }
      return undefined;
    },
  },
  {
    name: "a fork of a state that is not there is refused",
    async check(environment) {
      if (!environment.capabilities.fork) return undefined;
      const unknown = { files: "0".repeat(64), processes: null };
      await refusal(environment.fork?.(unknown, 2) ?? Promise.resolve(), "a fork of an unknown state");
      const { manifest } = await captured(environment);
      assert.equal(await refusal(environment.fork?.(manifest, 0) ?? Promise.resolve(), "no fork"), "BAD_ARGUMENT");
      return undefined;
    },
  },
];
