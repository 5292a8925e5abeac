// Which CRIU and mkfs.btrfs a sandbox uses, and where its knowledge of the kernel is kept.
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CriuProgram } from "../../src/environment/sandbox/processes/criu-channel.ts";
import { isKernelKnown, kernelFeatures } from "../../src/environment/sandbox/processes/kernel-features.ts";
import { compareVersions, findCriu, findMkfsBtrfs } from "../../src/environment/sandbox/tools.ts";
import { lacking } from "../capabilities.ts";
import { commandFile } from "../helpers/library.ts";
import { tools } from "../helpers/tools.ts";

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "agentrewind-tools-"));
});
afterEach(() => rmSync(base, { recursive: true }));

/** A private copy that is a script. */
function copy(name: string, program: string, script: string): void {
  const folder = join(base, name, "usr", "sbin");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, program), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, program), 0o755);
}

test("versions are compared by their numbers", () => {
  expect(["4.2.1", "4.10", "3.17.1", "4.2"].sort(compareVersions)).toEqual(["3.17.1", "4.2", "4.2.1", "4.10"]);
  expect(compareVersions("4.2", "4.2.0")).toBe(0);
});

describe.skipIf(lacking("root"))("private copies", () => {
  const search = () => ({ folder: base, privateOnly: true });

  test("none", async () => {
    expect(await findCriu(search())).toMatchObject({
      status: "unsupported",
      tool: null,
      reason: "there is no CRIU",
      hint: expect.stringContaining("sandbox-tools.mjs"),
    });
    expect(await findMkfsBtrfs(search())).toMatchObject({ status: "unsupported", tool: null });
  });

  test("one that is too old is named with its version", async () => {
    copy("criu-4.1.1", "criu", "echo Version: 4.1.1");
    const found = await findCriu(search());
    expect(found).toMatchObject({ status: "unsupported", tool: null });
    expect(found.reason).toContain("criu-4.1.1/usr/sbin/criu is version 4.1.1, older than 4.2");
  });

  test("one that does not run leaves it open", async () => {
    copy("criu-4.2.1", "criu", "exit 3");
    expect(await findCriu(search())).toMatchObject({ status: "inconclusive", tool: null });
  });

  test("one that misses something in the kernel says what", async () => {
    copy(
      "criu-4.2.1",
      "criu",
      '[ "$1" = check ] && echo "Error (criu/cr-check.c:1): no clone" >&2 && exit 1; echo 4.2.1',
    );
    expect((await findCriu(search())).reason).toMatch(/\(4\.2\.1\) says: no clone$/);
  });

  test("the newest that runs; folders of an installation under way are not looked at", async () => {
    copy("btrfs-progs-6.9", "mkfs.btrfs", "echo mkfs.btrfs, part of btrfs-progs v6.9");
    copy("btrfs-progs-6.10", "mkfs.btrfs", "echo mkfs.btrfs, part of btrfs-progs v6.10");
    copy("btrfs-progs-7.0", "mkfs.btrfs", "exit 1");
    copy(".new-1/btrfs-progs-8.0", "mkfs.btrfs", "echo v8.0");
    expect(await findMkfsBtrfs(search())).toMatchObject({
      status: "available",
      tool: { version: "6.10", command: [join(base, "btrfs-progs-6.10/usr/sbin/mkfs.btrfs")] },
    });
  });
});

describe.skipIf(lacking("root", "criu"))("CRIU", () => {
  const program = (): CriuProgram => tools().criu.tool as CriuProgram;
  const files = (): string[] => readdirSync(base);

  test("what it finds out about the kernel is kept once a boot", async () => {
    const [one, other] = await Promise.all([kernelFeatures(program(), base), kernelFeatures(program(), base)]);
    expect(one).toBe(other);
    expect(files()).toEqual([one.slice(base.length + 1)]);
    const { mode, mtimeNs, size } = statSync(one, { bigint: true });
    expect(mode & 0o777n).toBe(0o600n);
    expect(size).toBeGreaterThan(0n);
    expect(await kernelFeatures(program(), base)).toBe(one);
    expect(statSync(one, { bigint: true }).mtimeNs).toBe(mtimeNs);
    expect(await isKernelKnown(program(), base)).toBe(true);
    expect(await isKernelKnown({ ...program(), version: "9.9" }, base)).toBe(false);
  });

  test("what was kept of another boot goes away", async () => {
    writeFileSync(join(base, "criu-kernel-of-another-boot"), "");
    writeFileSync(join(base, "other"), "");
    const file = await kernelFeatures(program(), base);
    expect(files().sort()).toEqual([file.slice(base.length + 1), "other"].sort());
  });

  test("a CRIU that fails leaves nothing behind", async () => {
    copy("criu", "criu", "exit 1");
    const broken = { version: "4.2", prefix: join(base, "criu"), command: ["/proc/self/fd/8/usr/sbin/criu"] };
    await expect(kernelFeatures(broken, join(base, "cache"))).rejects.toMatchObject({ code: "NOT_AVAILABLE" });
    expect(existsSync(join(base, "cache"))).toBe(false);
  });
});

describe.skipIf(lacking("root", "criu", "btrfs"))("scripts/sandbox-tools.mjs", () => {
  const script = resolve(import.meta.dirname, "../../scripts/sandbox-tools.mjs");
  const run = promisify(execFile);

  test("where everything is there it fetches nothing", async () => {
    const { stdout } = await run(process.execPath, [script, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: true,
      criu: { status: "available", version: tools().criu.tool?.version, from: null },
      mkfsBtrfs: { status: "available", from: null },
    });
  });

  test("what is not to be had is told in one sentence each", async () => {
    const env = { PATH: base, XDG_CACHE_HOME: base };
    const failure = await run(process.execPath, [script], { env }).then(
      () => undefined,
      (error) => error,
    );
    expect(failure).toMatchObject({ code: 1, stderr: "" });
    const onMachine = [
      "CRIU is not to be had: .*there is no CRIU.*Debian and Ubuntu only.*\\.\\n",
      "mkfs.btrfs .*\\.\\n",
    ];
    expect(failure.stdout).toMatch(new RegExp(`^${onMachine.join("")}$`));
    expect(readdirSync(join(base, "agentrewind", "tools"))).toEqual([]);
  });
});

test.skipIf(lacking("native", "root", "overlay", "namespaces"))(
  "where the root is an overlay over an overlay, doctor says that none can lie on it",
  async () => {
    const stack = `
      mount --make-rprivate /; mount -t tmpfs tmpfs ${base}; cd ${base}
      for n in 1 2; do mkdir upper$n work$n merged$n; done
      mount -t overlay -o lowerdir=/,upperdir=upper1,workdir=work1 overlay merged1
      mount -t overlay -o lowerdir=merged1,upperdir=upper2,workdir=work2 overlay merged2
      for folder in proc dev; do mount --rbind /$folder merged2/$folder; done
      mkdir -p merged2/$1 merged2/tmp; mount --bind $1 merged2/$1
      exec chroot merged2 "$2" "$3" --workspace /usr doctor --json`;
    const command = [
      "--mount",
      "bash",
      "-ec",
      stack,
      "-",
      resolve(commandFile, "../.."),
      process.execPath,
      commandFile,
    ];
    const { stdout } = await promisify(execFile)("unshare", command);
    const { needs } = JSON.parse(stdout).sandbox;
    expect(needs.find(({ name }: { name: string }) => name === "overlay")).toMatchObject({
      status: "unsupported",
      reason: expect.stringContaining("none can be mounted over this machine's root"),
    });
  },
);
