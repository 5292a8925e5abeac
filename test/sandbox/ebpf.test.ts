// `inspector: "ebpf"` as its users have it: turns in which nothing happened share what was captured, and a rewind to them is exact.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { describe, expect, onTestFinished, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { Held, needed, until } from "./held.ts";

const folder = (): string => {
  const base = mkdtempSync(join(tmpdir(), "agentrewind-ebpf-"));
  onTestFinished(() => void execFileSync("rm", ["-rf", base]));
  mkdirSync(join(base, "workspace"));
  return base;
};

test("it is for sandboxes", async () => {
  const base = folder();
  const options = { workspace: join(base, "workspace"), store: join(base, "store"), inspector: "ebpf" } as const;
  const refused = openRewind(options);
  await expect(refused).rejects.toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
});

describe.skipIf(lacking(...needed, "ebpf"))("turns with the kernel's counters", () => {
  test("a turn without any work has the halves of the one before, whatever runs idly, and can be returned to", async () => {
    const held = await Held.open({ network: "own" }, [], "ebpf");
    try {
      await held.sh("v=1; echo one >file; sleep 1000 & disown");
      const turn = async (text: string) => {
        const begun = await held.thread.beginTurn({ messages: [{ role: "user", content: text }] });
        return begun.gate();
      };
      let first = await turn("first");
      let quiet = await turn("second");
      // What was just started comes to rest.
      await until(async () => {
        [first, quiet] = [quiet, await turn("again")];
        return quiet.environment.processes === first.environment.processes;
      });
      expect(quiet.environment).toEqual(first.environment);
      expect(Object.values(quiet.changes ?? {}).flat()).toEqual([]);
      await held.sh("v=2; echo two >file; pkill sleep");
      const after = await turn("third");
      expect(after.environment.files).not.toBe(quiet.environment.files);
      expect(after.environment.processes).not.toBe(quiet.environment.processes);
      await held.back(quiet);
      expect(await held.sh("echo $v $(cat file) $(pgrep -c sleep)")).toBe("1 one 1");
    } finally {
      await held.end();
    }
  });

  test("two sandboxes of one process are told apart, and the first one closed takes nothing from the other", async () => {
    const [one, other] = [
      await Held.open({ network: "own" }, [], "ebpf"),
      await Held.open({ network: "own" }, [], "ebpf"),
    ];
    try {
      const capture = async (held: Held) => (await held.rewind.environment.capture().captured).manifest;
      for (const held of [one, other]) await held.sh("true");
      const [first, second] = [await capture(one), await capture(other)];
      await one.sh("true");
      expect(await one.rewind.environment.changed?.(first)).toBe("unknown");
      await until(async () => (await other.rewind.environment.changed?.(second)) === "none");
      await one.end();
      expect(await other.rewind.environment.changed?.(second)).toBe("none");
      await other.sh("true");
      expect(await other.rewind.environment.changed?.(second)).toBe("unknown");
    } finally {
      await other.end();
    }
  });
});
