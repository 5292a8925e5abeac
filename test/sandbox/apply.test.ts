// What a sandbox made is brought back to the host, what both changed is named, and earlier states stay as they were.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { importBundle } from "agentrewind";
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { run } from "../helpers/command.ts";
import { digestTree } from "../helpers/digest.ts";
import { runSteps } from "../helpers/steps.ts";
import { codeOf, endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { type Machine, needed, openMachine } from "./machine.ts";

const base = `
mkdir -p keep gone/sub turns/deep solid other
echo 1 > keep/same; echo 1 > keep/changed; echo 1 > keep/removed; echo 1 > mode; chmod 600 mode
echo 1 > gone/sub/file; echo 1 > turns/deep/file; echo 1 > becomes-folder; ln -s mode link
echo 1 > solid/old; echo 1 > other/file; printf x > $'new\\nline'`;

const work = `
echo 2 > keep/changed; rm keep/removed; chmod 755 mode; rm -r gone; rm -r turns; echo 2 > turns
rm becomes-folder; mkdir becomes-folder; echo 2 > becomes-folder/file; ln -sfn keep/same link
rm -r solid; mkdir solid; echo 2 > solid/fresh; mkdir -p added/below; echo 2 > added/below/file
ln added/below/file added/hard; chmod 750 added; printf y > $'new\\nline'; touch -d 2001-02-03 keep/changed; setfattr -n user.note -v hi mode 2>/dev/null || true`;

describe.skipIf(lacking(...needed))("apply", () => {
  let opened: Machine | undefined;
  const workspaces: string[] = [];
  afterEach(async () => {
    await opened?.end();
    opened = undefined;
    for (const one of workspaces.splice(0)) fs.rmSync(one, { recursive: true, force: true });
  });

  async function begin(): Promise<{ workspace: string; machine: Machine }> {
    const workspace = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), "agentrewind-workspace-"));
    workspaces.push(workspace);
    execFileSync("bash", ["-ec", base], { cwd: workspace });
    opened = await openMachine({ workspace });
    return { workspace, machine: opened };
  }
  const inside = (machine: Machine) => digestTree(`${machine.environment.path("")}`);
  const untimed = (lines: readonly string[]) => lines.map((line) => line.replace(/\b\d{19}\b/g, ""));

  test("F-68: all of it, once; and a rewind still finds what was there before", async () => {
    const { workspace, machine } = await begin();
    const before = inside(machine);
    const { manifest } = await machine.environment.capture().captured;
    await machine.says(work);
    const after = inside(machine);
    const onHost = digestTree(workspace);
    const plan = await machine.environment.apply?.({ dryRun: true });
    expect(digestTree(workspace), "a dry run").toEqual(onHost);
    const applied = await machine.environment.apply?.();
    expect(applied).toEqual(plan);
    expect(applied).toEqual({
      added: expect.arrayContaining(["added", "added/below", "added/below/file", "added/hard", "solid/fresh"]),
      changed: expect.arrayContaining(["keep/changed", "mode", "turns", "becomes-folder", "link", '"new\\nline"']),
      removed: expect.arrayContaining(["keep/removed", "gone", "solid/old"]),
      conflicts: [],
      notApplied: [],
    });
    expect(
      execFileSync(
        "bash",
        [
          "-c",
          "cat keep/changed turns becomes-folder/file solid/fresh added/hard; readlink link; stat -c %a mode added; cat $'new\\nline'",
        ],
        { cwd: workspace, encoding: "utf8" },
      ),
    ).toBe("2\n2\n2\n2\n2\nkeep/same\n755\n750\ny");
    expect(fs.readdirSync(workspace).sort()).toEqual([
      "added",
      "becomes-folder",
      "keep",
      "link",
      "mode",
      "new\nline",
      "other",
      "solid",
      "turns",
    ]);
    expect(await machine.environment.apply?.()).toEqual({
      added: [],
      changed: [],
      removed: [],
      conflicts: [],
      notApplied: [],
    });
    expect(inside(machine)).toEqual(after);

    const then = await machine.environment.capture().captured;
    await machine.environment.restore(manifest);
    expect(inside(machine)).toEqual(before);
    expect(await machine.environment.diff(manifest, then.manifest)).toMatchObject({
      added: expect.arrayContaining(["added", "solid/fresh"]),
      removed: expect.arrayContaining(["keep/removed", "gone/sub/file", "solid/old"]),
    });
    await machine.reopen();
    expect(inside(machine)).toEqual(before);
    await machine.environment.restore(then.manifest);
    expect(untimed(inside(machine))).toEqual(untimed(after));
    await machine.environment.restore(manifest);
    await machine.says("rm -r keep/changed solid; echo 3 > keep/changed; echo 3 > gone/new");
    const second = inside(machine);
    await machine.environment.apply?.();
    expect(fs.readFileSync(join(workspace, "keep/changed"), "utf8")).toBe("3\n");
    expect(inside(machine)).toEqual(second);
    await machine.environment.restore(manifest);
    expect(inside(machine)).toEqual(before);
  });

  test("what both changed is a conflict, wherever it is the same it is none, and it can be overwritten", async () => {
    const { workspace, machine } = await begin();
    await sleep(300);
    await machine.says(
      "echo 2 > keep/changed; echo 2 > other/file; rm -r gone; echo 2 > mode; echo 2 > turns/deep/file; rm keep/removed",
    );
    fs.writeFileSync(join(workspace, "keep/changed"), "host\n");
    fs.writeFileSync(join(workspace, "other/file"), "2\n");
    fs.writeFileSync(join(workspace, "gone/sub/new"), "host\n");
    fs.rmSync(join(workspace, "turns"), { recursive: true });
    fs.symlinkSync("/etc", join(workspace, "turns"));
    const applied = await machine.environment.apply?.();
    expect(applied).toEqual({
      added: [],
      changed: ["mode"],
      removed: ["keep/removed"],
      conflicts: ["gone", "keep/changed", "turns"],
      notApplied: [],
    });
    expect(fs.readFileSync(join(workspace, "keep/changed"), "utf8")).toBe("host\n");
    expect(fs.existsSync(join(workspace, "gone/sub/new"))).toBe(true);
    expect(fs.existsSync("/etc/deep")).toBe(false);
    expect(await machine.environment.apply?.({ paths: ["keep"], overwrite: true })).toMatchObject({
      changed: ["keep/changed"],
    });
    expect(fs.readFileSync(join(workspace, "keep/changed"), "utf8")).toBe("2\n");
    await machine.says(`python3 -c 'import socket; socket.socket(1).bind("other/talk")'`);
    expect(await machine.environment.apply?.()).toMatchObject({
      changed: [],
      conflicts: ["gone", "turns"],
      notApplied: [{ path: "other/talk", reason: "a socket" }],
    });
    expect(await codeOf(machine.environment.apply?.({ paths: ["/usr/bin"] }) as Promise<unknown>)).toBe("PATH_OUTSIDE");
  });

  test.each([["apply.kept:1"], ["apply.placed:1"], ["apply.placed:5"], ["apply.placed:12"]])(
    "killed at %s, another call does the rest, and the checkpoint is what it was",
    async (point) => {
      const place = makePlace();
      const options = { environment: "sandbox", sandbox: { network: "own" } } as const;
      execFileSync("bash", ["-ec", base], { cwd: place.workspace });
      const steps = [
        { op: "open" },
        { op: "turn", context: { messages: ["m0"] }, durable: true },
        { op: "exec", command: work },
        { op: "turn", context: { messages: ["m0", "m1"] }, durable: true },
        { op: "apply" },
      ];
      // The root's own time is kept to the millisecond.
      const first = digestTree(place.workspace).slice(1);
      const { signal, results } = runSteps({ ...place, options, env: { AGENTREWIND_FAULT: point } }, steps);
      expect([signal, results.length]).toEqual(["SIGKILL", 4]);
      const rewind = await useRewind(place, options);
      const shown = () => digestTree(`${rewind.environment.path("")}`);
      const second = shown();
      expect((await rewind.apply()).conflicts).toEqual([]);
      expect(await rewind.apply()).toEqual({ added: [], changed: [], removed: [], conflicts: [], notApplied: [] });
      expect(shown()).toEqual(second);
      expect(untimed(digestTree(place.workspace))).toEqual(untimed(second));
      await rewind.thread("t").rewind({ to: "c0" });
      expect(shown().slice(1)).toEqual(first);
      await rewind.thread("t").rewind({ to: "c1" });
      expect(shown()).toEqual(second);
    },
  );

  test("by the command, beside the agent and without it; exec of a sandbox runs inside", async () => {
    const place = makePlace();
    const options = { environment: "sandbox" } as const;
    const rewind = await useRewind(place, options);
    await rewind.environment.exec("echo 1 > made; echo 1 > /opt/inside");
    await rewind.thread("t").checkpoint({ context: { messages: ["m0"] } });
    const command = async (...args: string[]) => run(["--workspace", place.workspace, "--store", place.store, ...args]);
    expect(await command("apply", "--dry-run")).toMatchObject({ stdout: "Would bring back 1 path:\n  A made\n" });
    expect(fs.existsSync(join(place.workspace, "made"))).toBe(false);
    expect(await command("apply", "made")).toMatchObject({ status: 0, stdout: "Brought back 1 path:\n  A made\n" });
    expect(fs.readFileSync(join(place.workspace, "made"), "utf8")).toBe("1\n");
    expect(await command("exec", "--", "cat", "/opt/inside")).toMatchObject({ status: 0, stdout: "1\n" });
    await endSession(rewind);
    fs.writeFileSync(join(place.workspace, "made"), "host\n");
    expect(await command("exec", "--", "sh", "-c", "echo 2 > made; cat /opt/inside")).toMatchObject({ stdout: "1\n" });
    const { stdout } = await command("apply", "--json");
    expect(JSON.parse(stdout)).toEqual({
      added: [],
      changed: [],
      removed: [],
      conflicts: ["made"],
      notApplied: [],
      dryRun: false,
    });
    expect(await command("apply", "/usr")).toMatchObject({ status: expect.any(Number), stdout: "" });
  });

  test("a bundle takes along what the host had before", async () => {
    const place = makePlace();
    const options = { environment: "sandbox", sandbox: { network: "own" } } as const;
    execFileSync("bash", ["-ec", base], { cwd: place.workspace });
    const rewind = await useRewind(place, options);
    const thread = rewind.thread("t");
    await thread.checkpoint({ context: { messages: ["m0"] } });
    await rewind.environment.exec(work);
    await thread.checkpoint({ context: { messages: ["m0", "m1"] } });
    await rewind.apply();
    const to = join(place.base, "t.bundle");
    await rewind.export({ to });
    await endSession(rewind);
    const other = makePlace();
    const { workspace } = await importBundle(to, { store: other.store, into: join(other.base, "in") });
    const moved = await useRewind({ ...other, workspace }, options);
    const says = async (line: string) => (await moved.environment.exec(line)).stdout;
    expect(await says("cat keep/changed turns; ls")).toContain("2\n2\nadded");
    await moved.thread("t").rewind({ to: "c0" });
    expect(await says("cat keep/changed keep/removed gone/sub/file turns/deep/file; ls")).toBe(
      "1\n1\n1\n1\nbecomes-folder\ngone\nkeep\nlink\nmode\nnew\nline\nother\nsolid\nturns\n",
    );
  });

  test("what is not on the host is said once, when it is closed", async () => {
    const { machine } = await begin();
    const said: string[] = [];
    const listen = ({ message }: Error): void => void said.push(message);
    process.on("warning", listen);
    await machine.reopen();
    await machine.exec("echo 2 > mode");
    await machine.reopen();
    await machine.reopen();
    await sleep(10);
    expect(said).toEqual([expect.stringContaining("is not all on the host")]);
    await machine.environment.apply?.();
    await machine.reopen();
    await machine.exec("echo 3 > mode");
    await machine.reopen();
    await sleep(10);
    process.off("warning", listen);
    expect(said).toHaveLength(2);
  });

  test("holes stay holes", async () => {
    const { workspace, machine } = await begin();
    await machine.says("truncate -s 64M sparse; printf x | dd of=sparse bs=1 seek=33554432 conv=notrunc status=none");
    await machine.environment.apply?.();
    const { size, blocks } = fs.statSync(join(workspace, "sparse"));
    expect([size, blocks < 4_000]).toEqual([64 << 20, true]);
    expect(execFileSync("cksum", ["sparse"], { cwd: workspace, encoding: "utf8" }).trim()).toBe(
      await machine.says("cksum sparse"),
    );
  });

  test("a folder that was removed wholly leaves nothing", async () => {
    const { workspace, machine } = await begin();
    await machine.exec(["bash", "-c", `cd /; rm -rf ${workspace}/* ${workspace}/.[!.]*`]);
    expect((await machine.environment.apply?.())?.conflicts).toEqual([]);
    expect(fs.readdirSync(workspace)).toEqual([]);
  });
});
