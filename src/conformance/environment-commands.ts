// Checks of `exec`.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { EnvironmentCheck } from "./environment-check.ts";
import { refusal, shell } from "./environment-tools.ts";

export const commandChecks: readonly EnvironmentCheck[] = [
  {
    name: "exec gives the exit code and both streams",
    async check(environment) {
      const result = await environment.exec("echo out; echo err >&2; exit 3");
      assert.deepEqual(
        { ...result },
        { exitCode: 3, signal: null, stdout: "out\n", stderr: "err\n", timedOut: false, truncated: false },
      );
      return undefined;
    },
  },
  {
    name: "exec runs in the workspace, or in a folder of it",
    async check(environment) {
      await shell(environment, "mkdir -p 'ü/b'; echo 1 > 'ü/b/f'");
      const { stdout } = await environment.exec("cat f", { cwd: "ü/b" });
      assert.equal(stdout, "1\n");
      assert.equal(await refusal(environment.exec("true", { cwd: "../" }), "a cwd outside"), "PATH_OUTSIDE");
      return undefined;
    },
  },
  {
    name: "exec passes arguments as they are, the environment and the input",
    async check(environment) {
      const { stdout } = await environment.exec(["printf", "%s|", "a b", "$X", "*"]);
      assert.equal(stdout, "a b|$X|*|");
      const other = await environment.exec('cat; printf %s "$X"', { input: "in ", env: { X: "y z" } });
      assert.equal(other.stdout, "in y z");
      return undefined;
    },
  },
  {
    name: "exec names the signal that ended a command",
    async check(environment) {
      const result = await environment.exec("kill -TERM $$");
      assert.deepEqual([result.exitCode, result.signal, result.timedOut], [null, "SIGTERM", false]);
      return undefined;
    },
  },
  {
    name: "exec ends a command, and what it started, when its time is over",
    async check(environment) {
      const result = await environment.exec("(sleep 1; echo late > late) & echo early; sleep 4", { timeoutMs: 300 });
      assert.equal(result.timedOut, true);
      assert.equal(result.exitCode, null);
      assert.equal(result.stdout, "early\n");
      await sleep(1200);
      assert.equal((await environment.exec("test -e late")).exitCode, 1, "its child went on");
      return undefined;
    },
  },
  {
    name: "exec ends a command when its signal is raised",
    async check(environment) {
      const controller = new AbortController();
      const running = environment.exec("echo started; sleep 4; echo 1 > finished", { signal: controller.signal });
      await sleep(200);
      controller.abort();
      await running.catch(() => {});
      assert.equal((await environment.exec("test -e finished")).exitCode, 1, "it ran to its end");
      return undefined;
    },
  },
  {
    name: "exec keeps no more output than asked for, and says so",
    async check(environment) {
      const result = await environment.exec("head -c 100000 /dev/zero | tr '\\0' x", { maxBytes: 1000 });
      assert.equal(result.truncated, true);
      assert(result.stdout.length > 0 && result.stdout.length <= 1000, `${result.stdout.length} bytes were kept`);
      return undefined;
    },
  },
  {
    name: "exec of a program that is not there is refused with COMMAND_FAILED",
    async check(environment) {
      const code = await refusal(environment.exec(["no-such-program-anywhere"]), "a program that is not there");
      assert.equal(code, "COMMAND_FAILED");
      return undefined;
    },
  },
];
