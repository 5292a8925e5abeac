// Checks of what limits a restore: some paths, a dry run, and that nothing still writes.
import assert from "node:assert/strict";
import type { EnvironmentCheck } from "./environment-check.ts";
import { captured, look, refusal, shell } from "./environment-tools.ts";

export const partialChecks: readonly EnvironmentCheck[] = [
  {
    name: "with paths, only these go back",
    async check(environment) {
      await shell(environment, "mkdir -p part/deep; echo 1 > part/deep/f; echo 1 > part/g; echo 1 > rest");
      const { manifest } = await captured(environment);
      await shell(environment, "rm -r part/deep; echo 2 > part/g; echo 2 > rest; echo 2 > fresh; echo 2 > part/fresh");
      const { restored } = await environment.restore(manifest, {
        paths: new Set(["part/deep", "part/fresh", "fresh"]),
      });
      assert.deepEqual([...restored.removed].sort(), ["fresh", "part/fresh"]);
      assert.equal(
        await shell(environment, "cat part/deep/f part/g rest; ls . part"),
        "1\n2\n2\n.:\npart\nrest\n\npart:\ndeep\ng\n",
      );
      return undefined;
    },
  },
  {
    name: "a path that neither state has is refused, with nothing touched",
    async check(environment) {
      await shell(environment, "echo 1 > known");
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > known");
      const before = await look(environment);
      const code = await refusal(
        environment.restore(manifest, { paths: new Set(["known", "not-known"]) }),
        "an unknown path",
      );
      assert.equal(code, "BAD_ARGUMENT");
      assert.deepEqual(await look(environment), before);
      return undefined;
    },
  },
  {
    name: "a dry run says what a restore would do, and touches nothing",
    async check(environment) {
      await shell(environment, "echo 1 > planned; touch -d 2020-01-01 .");
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > planned; echo 2 > extra");
      const before = await look(environment);
      const { restored } = await environment.restore(manifest, { dryRun: true });
      assert.deepEqual([restored.changed, restored.removed], [["planned"], ["extra"]]);
      assert.deepEqual(await look(environment), before);
      return undefined;
    },
  },
  {
    name: "settle ends the commands that still run",
    async check(environment) {
      if (environment.settle === undefined) return undefined;
      const running = environment.exec("echo begun > begun; sleep 30; echo late > late");
      while (!(await environment.list("")).some((entry) => entry.name === "begun"));
      await environment.settle();
      assert.notEqual((await running).exitCode, 0);
      assert.equal(await shell(environment, "ls"), "begun\n");
      return undefined;
    },
  },
];
