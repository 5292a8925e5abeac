// What is changed on the host below a sandbox: named at a boundary, whoever sees it.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SandboxGroup } from "../../src/environment/sandbox/cgroup.ts";
import { HostFiles } from "../../src/environment/sandbox/host-files.ts";
import { cgroup2Mount } from "../../src/environment/sandbox/mount-table.ts";
import { loadNative, type Native } from "../../src/native.ts";
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

  /** What the boundaries tell until all of these paths are told, and some more. What takes long, or other sandboxes look at as well, is not looked at for each. */
  const told = async (...expected: string[]) => {
    const found: Record<string, string> = {};
    for (let more = 12; more > 0; ) {
      await sleep(100);
      const { problems } = await machine.environment.capture().captured;
      for (const { path, reason } of problems) {
        expect(found[path], `${path} is told once`).toBeUndefined();
        found[path] = reason;
      }
      if (expected.every((path) => path in found)) more--;
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
    expect(await told("changed", "own", "fresh", "folder", "gone")).toEqual({
      changed: seen,
      own,
      fresh: seen,
      folder: seen,
      gone: own,
    });
    expect(await told()).toEqual({});
    expect(await machine.says("cat changed own fresh")).toBe("host\ninside\nhost");
  });

  test("what is elsewhere is told with its whole path, and what is hidden not at all", async () => {
    const folder = mkdtempSync("/opt/agentrewind-host-");
    try {
      expect(Object.keys(await told(folder))).toEqual([folder]);
      writeFileSync(join(folder, "file"), "host\n");
      expect(Object.keys(await told(`${folder}/file`))).toEqual([`${folder}/file`]);
      writeFileSync(join(hidden, "file"), "host\n");
      expect(await told()).toEqual({});
    } finally {
      rmSync(folder, { recursive: true });
    }
    expect(Object.keys(await told(folder, `${folder}/file`)).sort()).toEqual([folder, `${folder}/file`]);
  });

  test("F-69: what was changed while nobody had it open is told too, whatever it is called", async () => {
    const { workspace } = machine;
    await machine.reopen(() => writeFileSync(Buffer.from(`${workspace}/\xff\n`, "latin1"), "x"));
    expect(Object.keys(await told('"\\xff\\n"'))).toEqual(['"\\xff\\n"']);
  });

  test("a sandbox that lives is counted", () => {
    expect(new SandboxGroup(cgroup2Mount() as string, "none").beside()).toBeGreaterThanOrEqual(1);
  });

  test("many are told by number", async () => {
    mkdirSync(join(machine.workspace, "many"));
    for (let i = 0; i < 80; i++) writeFileSync(join(machine.workspace, "many", `${i}`), "");
    const found = await told("host");
    expect(Object.keys(found)).toHaveLength(51);
    expect(found.host).toBe("HOST_WRITE: 31 more paths were changed on the host meanwhile");
  });
});

describe.skipIf(lacking(...needed))("the system's folders", () => {
  /** How often a folder is looked at until the workspace and /etc were looked at so often. */
  const looks = async (sandboxes: number, atWorkspace: number, atEtc: number): Promise<Map<string, number>> => {
    const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-host-files-"));
    const counted = new Map<string, number>();
    const native = loadNative().native as Native;
    const host = new HostFiles({
      native: {
        ...native,
        stampTree(root, below) {
          const name = Buffer.from(below).toString();
          counted.set(name, (counted.get(name) ?? 0) + 1);
          return native.stampTree(root, below);
        },
      },
      overlays: [{ name: "root", path: "/", lower: "/", kept: join(base, "kept") }],
      folders: [base],
      hidden: [],
      sandboxes: () => sandboxes,
      file: join(base, "seen"),
    });
    while ((counted.get(base.slice(1)) ?? 0) < atWorkspace || (counted.get("etc") ?? 0) < atEtc) {
      host.lookAround();
      await sleep(110);
      await host.look();
    }
    await host.close();
    rmSync(base, { recursive: true });
    return counted;
  };

  test("are looked at the less often the more sandboxes look at them, and one's own workspace is not", async () => {
    // Alone, it comes to a third look, however long one takes here.
    const alone = await looks(1, 0, 3);
    const beside = await looks(1e9, 10, 2);
    expect([alone.get("etc"), beside.get("etc")]).toEqual([3, 2]);
  });
});
