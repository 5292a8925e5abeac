// Checks of `capture`, `diff` and `verify`.
import assert from "node:assert/strict";
import type { EnvironmentCheck } from "./environment-check.ts";
import { captured, look, noChanges, refusal, shell } from "./environment-tools.ts";

const unknown = { files: "0".repeat(64), processes: null };

export const captureChecks: readonly EnvironmentCheck[] = [
  {
    name: "probe says that the environment is available, and why",
    async check(environment) {
      const probe = await environment.probe();
      assert.equal(probe.status, "available");
      assert.notEqual(probe.reason, "");
      return undefined;
    },
  },
  {
    name: "capture changes nothing that the tools can see",
    async check(environment) {
      await shell(
        environment,
        "mkdir d; echo 1 > untouched; echo 2 > d/f; chmod 600 d/f; touch -d 2020-01-01 untouched d",
      );
      const before = [await look(environment), await shell(environment, "stat -c '%a %Y' .")];
      await captured(environment);
      assert.deepEqual([await look(environment), await shell(environment, "stat -c '%a %Y' .")], before);
      return undefined;
    },
  },
  {
    name: "two captures without a change between them give equal manifests",
    async check(environment) {
      await shell(environment, "mkdir d; echo 1 > d/f");
      const first = await captured(environment);
      const second = await captured(environment);
      assert.deepEqual(second.manifest, first.manifest);
      return undefined;
    },
  },
  {
    name: "a change gives another manifest",
    async check(environment) {
      await shell(environment, "echo 1 > f; touch -d 2020-01-01 f");
      const first = await captured(environment);
      await shell(environment, "echo 2 > f; touch -d 2020-01-01 f");
      const second = await captured(environment);
      assert.notDeepEqual(second.manifest, first.manifest);
      return undefined;
    },
  },
  {
    name: "a half that is not captured is null in the manifest",
    async check(environment) {
      const { manifest } = await captured(environment);
      const { files, processes, programs = false } = environment.capabilities;
      assert.equal(manifest.files !== null, files);
      if (!processes && !programs) assert.equal(manifest.processes, null);
      return undefined;
    },
  },
  {
    name: "durable is not reached before captured, and neither is left pending",
    async check(environment) {
      await shell(environment, "echo 1 > f");
      const order: string[] = [];
      const capture = environment.capture();
      await Promise.all([
        capture.captured.then(() => order.push("captured")),
        capture.durable.then(() => order.push("durable")),
      ]);
      assert.deepEqual(order, ["captured", "durable"]);
      return undefined;
    },
  },
  {
    name: "a capture that is given up rejects; it is never an empty state",
    async check(environment) {
      await shell(environment, "echo precious > f");
      const before = await look(environment);
      const capture = environment.capture({ signal: AbortSignal.abort() });
      const [state, durable] = await Promise.allSettled([capture.captured, capture.durable]);
      if (state.status === "fulfilled") {
        await environment.restore(state.value.manifest);
        assert.deepEqual(await look(environment), before, "the state that was given is not the state that was");
      } else {
        await refusal(capture.captured, "a capture that was given up");
        assert.equal(durable.status, "rejected", "durable cannot be reached without captured");
      }
      await captured(environment);
      return undefined;
    },
  },
  {
    name: "diff names what was added, removed, changed, and whose metadata or kind differs",
    async check(environment) {
      await shell(
        environment,
        "echo 1 > changed; echo 1 > removed; echo 1 > mode; echo 1 > type; mkdir d; touch -d 2020-01-01 .",
      );
      const from = await captured(environment);
      await shell(
        environment,
        "echo 2 > changed; rm removed; chmod 600 mode; rm type; mkdir type; echo new > d/added; touch -d 2020-01-01 . d",
      );
      const to = await captured(environment);
      const { added, removed, changed, mode, type } = await environment.diff(from.manifest, to.manifest);
      assert.deepEqual(added, ["d/added"]);
      assert.deepEqual(removed, ["removed"]);
      assert.deepEqual(changed, ["changed"]);
      assert.deepEqual(type, ["type"]);
      assert(mode.includes("mode"));
      return undefined;
    },
  },
  {
    name: "diff names a certain rename once, not as a loss and a gain",
    async check(environment) {
      await shell(environment, "echo unique content > old-name; echo 1 > other");
      const from = await captured(environment);
      await shell(environment, "mkdir d; mv old-name d/new-name");
      const to = await captured(environment);
      const { added, removed, renamed } = await environment.diff(from.manifest, to.manifest);
      assert.deepEqual(renamed, [{ from: "old-name", to: "d/new-name" }]);
      assert.deepEqual({ added, removed }, { added: ["d"], removed: [] });
      return undefined;
    },
  },
  {
    name: "diff of a state with itself is empty",
    async check(environment) {
      await shell(environment, "echo 1 > f");
      const { manifest } = await captured(environment);
      assert.deepEqual(await environment.diff(manifest, manifest), noChanges);
      return undefined;
    },
  },
  {
    name: "verify finds nothing wrong with a sound state, and something with one that is not there",
    async check(environment) {
      await shell(environment, "mkdir d; echo 1 > d/f");
      const { manifest } = await captured(environment);
      assert.deepEqual(await environment.verify(manifest), []);
      assert.notDeepEqual(await environment.verify(unknown), []);
      return undefined;
    },
  },
  {
    name: "verify names what a damaged state lacks",
    async check(environment, { damage }) {
      if (damage === undefined) return undefined;
      await shell(environment, "echo only here > f");
      const { manifest } = await captured(environment);
      await damage(environment, manifest);
      assert.notDeepEqual(await environment.verify(manifest), []);
      return undefined;
    },
  },
  {
    name: "fork works, or is said not to",
    async check(environment) {
      await shell(environment, "echo 1 > f");
      const { manifest } = await captured(environment);
      if (!environment.capabilities.fork) {
        if (environment.fork !== undefined)
          assert.equal(await refusal(environment.fork(manifest, 1), "a fork"), "NOT_AVAILABLE");
        return undefined;
      }
      assert(environment.fork !== undefined);
      const branches = await environment.fork(manifest, 2);
      assert.equal(branches.length, 2);
      for (const [index, branch] of branches.entries()) {
        assert.equal(await shell(branch, "cat f"), "1\n");
        await shell(branch, `echo branch ${index} > f`);
      }
      assert.equal(await shell(environment, "cat f"), "1\n");
      assert.equal(await shell(branches[0] as typeof environment, "cat f"), "branch 0\n");
      for (const branch of branches) await branch.close();
      return undefined;
    },
  },
];
