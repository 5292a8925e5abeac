// What is changed on the host below a sandbox: named at a boundary, whoever sees it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { type Machine, needed, openMachine } from "./machine.ts";

describe.skipIf(lacking(...needed))("the host's files", () => {
  const hidden = mkdtempSync("/opt/agentrewind-hidden-");
  let machine: Machine;
  beforeAll(async () => {
    const workspace = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-workspace-"));
    for (const name of ["changed", "own", "gone"]) writeFileSync(join(workspace, name), "1\n");
    machine = await openMachine({ workspace, hide: [hidden] });
  });
  afterAll(async () => {
    await machine?.end();
    for (const one of [machine.workspace, hidden]) rmSync(one, { recursive: true });
  });

  /** What the boundaries of the next time tell; a folder that takes long is not looked at for each. */
  const told = async () => {
    const found: Record<string, string> = {};
    for (let boundaries = 0; boundaries < 12; boundaries++) {
      await sleep(100);
      const { problems } = await machine.environment.capture().captured;
      for (const { path, reason } of problems) {
        expect(found[path], `${path} is told once`).toBeUndefined();
        found[path] = reason;
      }
    }
    return found;
  };

  test("what the sandbox changes is not told, what the host changes is, once", async () => {
    expect(await told()).toEqual({});
    await machine.exec("echo inside > own; echo inside > new; rm gone");
    expect(await told()).toEqual({});
    for (const name of ["changed", "own", "fresh"]) writeFileSync(join(machine.workspace, name), "host\n");
    mkdirSync(join(machine.workspace, "folder"));
    rmSync(join(machine.workspace, "gone"));
    const [seen, own] = ["the sandbox sees the host's", "the sandbox has its own"].map(
      (end) => `HOST_WRITE: it was changed on the host meanwhile; ${end}`,
    );
    expect(await told()).toEqual({ changed: seen, own, fresh: seen, folder: seen, gone: own });
    expect(await told()).toEqual({});
    expect(await machine.says("cat changed own fresh")).toBe("host\ninside\nhost");
  });

  test("what is elsewhere is told with its whole path, and what is hidden not at all", async () => {
    const folder = mkdtempSync("/opt/agentrewind-host-");
    try {
      expect(Object.keys(await told())).toEqual([folder]);
      writeFileSync(join(folder, "file"), "host\n");
      expect(Object.keys(await told())).toEqual([`${folder}/file`]);
      writeFileSync(join(hidden, "file"), "host\n");
      expect(await told()).toEqual({});
    } finally {
      rmSync(folder, { recursive: true });
    }
    expect(Object.keys(await told()).sort()).toEqual([folder, `${folder}/file`]);
  });

  test("F-69: what was changed while nobody had it open is told too, whatever it is called", async () => {
    const { workspace } = machine;
    await machine.reopen(() => writeFileSync(Buffer.from(`${workspace}/\xff\n`, "latin1"), "x"));
    expect(Object.keys(await told())).toEqual(['"\\xff\\n"']);
  });

  test("many are told by number", async () => {
    mkdirSync(join(machine.workspace, "many"));
    for (let i = 0; i < 80; i++) writeFileSync(join(machine.workspace, "many", `${i}`), "");
    const found = await told();
    expect(Object.keys(found)).toHaveLength(51);
    expect(found.host).toBe("HOST_WRITE: 31 more paths were changed on the host meanwhile");
  });
});
