// What a sandbox may use of the machine, and which rights a program inside may get.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { enable } from "../../src/environment/sandbox/limits.ts";
import { cgroup1Mount, cgroup2Mount } from "../../src/environment/sandbox/mount-table.ts";
import { lacking } from "../capabilities.ts";
import { codeOf } from "../helpers/workspace.ts";
import { type Machine, needed, openMachine } from "./machine.ts";

const takes = (megabytes: number) => ["python3", "-c", `import os; b = os.urandom(${megabytes} << 20); print(len(b))`];

const forks = `
import os, signal
pids = []
try:
    while len(pids) < 100:
        pids.append(os.fork())
        if pids[-1] == 0: signal.pause()
except BlockingIOError: pass
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.wait()
print(len(pids))`;

describe.skipIf(lacking(...needed))("limits", () => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await openMachine({ limits: { memory: 100 << 20, pids: 40 }, noNewPrivs: true });
  });
  afterAll(async () => {
    await machine?.end();
    // Nothing of it is left in the hierarchies.
    for (const controller of ["memory", "pids"]) {
      const folder = join(cgroup1Mount(controller) ?? "", "agentrewind");
      if (existsSync(folder)) expect(readdirSync(folder).filter((name) => machine.name === name)).toEqual([]);
    }
  });

  const hold = async () => {
    expect(await machine.exec(takes(20))).toMatchObject({ exitCode: 0 });
    expect(await machine.exec(takes(300))).toMatchObject({ exitCode: null, signal: "SIGKILL" });
    const started = Number((await machine.exec(["python3", "-c", forks])).stdout);
    expect(started).toBeGreaterThan(20);
    expect(started).toBeLessThan(40);
    expect(await machine.says("grep NoNewPrivs /proc/self/status")).toBe("NoNewPrivs:\t1");
  };

  test("memory, processes and privileges are kept within them, before and behind a rewind", async () => {
    await machine.exec("v=kept");
    const { manifest } = await machine.environment.capture().captured;
    await hold();
    const { notRestored } = await machine.environment.restore(manifest);
    expect(notRestored).toEqual([]);
    await hold();
    expect(await machine.says("echo $v")).toBe("kept");
  });
});

describe.skipIf(lacking(...needed))("without limits", () => {
  test("a program may get more rights, and what cannot be a limit is refused", async () => {
    const machine = await openMachine();
    expect(await machine.says("grep NoNewPrivs /proc/self/status")).toBe("NoNewPrivs:\t0");
    await machine.end();
    const { openRewind } = await import("agentrewind");
    for (const limits of [{ memory: 0 }, { memory: -1 }, { pids: 1.5 }, { cpu: 1 }] as never[])
      expect(await codeOf(openRewind({ workspace: "/tmp", environment: "sandbox", sandbox: { limits } }))).toBe(
        "BAD_ARGUMENT",
      );
  });

  test("a controller of the hierarchy of version 2 is handed down to a group", () => {
    const mount = cgroup2Mount() as string;
    const [controller] = readFileSync(join(mount, "cgroup.controllers"), "utf8").split(/\s+/);
    const path = ["agentrewind", "test-limits", "tree"];
    if (controller !== undefined && controller !== "") expect(enable(mount, path, controller)).toBe(true);
    expect(enable(mount, path, "nothing-that-is")).toBe(false);
    mkdirSync(join(mount, ...path), { recursive: true });
    expect(readFileSync(join(mount, ...path, "cgroup.controllers"), "utf8").trim()).toBe(controller ?? "");
    rmdirSync(join(mount, ...path));
    rmdirSync(join(mount, "agentrewind", "test-limits"));
  });
});
