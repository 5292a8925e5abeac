// What a sandbox sees of its machine, and what nobody inside can do to it, root included.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { codeOf } from "../helpers/workspace.ts";
import { type Machine, needed, openMachine } from "./machine.ts";

const ready = !lacking(...needed);
/** Major and minor number of what the host's root lies on. */
const rootDevice = ready ? execFileSync("stat", ["-c", "%Hd %Ld", "/"], { encoding: "utf8" }).trim() : "";
const bash = (command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { encoding: "utf8", stdio: "pipe" });

describe.skipIf(!ready)("seen from inside", () => {
  let machine: Machine;
  const says: Machine["says"] = (command, options) => machine.says(command, options);
  /** Whether a command fails. */
  const fails = async (command: string): Promise<boolean> => (await machine.exec(command)).exitCode !== 0;
  const home = `/opt/agentrewind-home-${process.pid}`;
  const credentials = ["hidden/secret", ".ssh/id", ".aws/credentials", ".config/gcloud/key", ".netrc"];
  const device = join(home, "device");
  const hostHome = process.env.HOME ?? "/root";

  beforeAll(async () => {
    for (const name of credentials) {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), "secret");
    }
    execFileSync("mknod", ["-m", "666", device, "c", "1", "5"]);
    // Where CRIU may lie.
    symlinkSync(join(hostHome, ".cache"), join(home, ".cache"));
    process.env.HOME = home;
    machine = await openMachine({ hide: [join(home, "hidden")] });
  });
  afterAll(async () => {
    await machine?.end();
    process.env.HOME = hostHome;
    rmSync(home, { recursive: true });
  });

  test("its own processes alone", async () => {
    const pids = (await says("cd /proc; echo [0-9]*")).split(" ").map(Number);
    expect(pids.slice(0, 2)).toEqual([1, 2]);
    expect(Math.max(...pids)).toBeLessThan(100);
    expect(await says("readlink /proc/self/ns/pid")).not.toBe(bash("readlink /proc/self/ns/pid").trim());
    for (const space of ["mnt", "ipc", "uts"])
      expect(await says(`readlink /proc/self/ns/${space}`)).not.toBe(bash(`readlink /proc/self/ns/${space}`).trim());
  });

  test("devices that everybody has, terminals, and empty folders for what goes", async () => {
    expect(
      await says(
        "head -c 4 /dev/urandom | wc -c; head -c 3 /dev/zero | wc -c; echo x >/dev/null; cat /dev/stdin <<<in",
      ),
    ).toBe("4\n3\nin");
    expect(await fails("echo x >/dev/full")).toBe(true);
    expect(await says("script -qec 'tty' /dev/null </dev/null | tr -d '\\r'")).toMatch(/^\/dev\/pts\/0/);
    expect(await says("ls -A /dev/shm; stat -c %a /tmp /dev/shm; touch /dev/shm/a /tmp/a")).toBe("1777\n1777");
    // The way to the workspace alone.
    expect(await says("ls /tmp")).toBe(["a", machine.workspace.split("/").at(-1)].sort().join("\n"));
    expect(existsSync("/dev/shm/a")).toBe(false);
  });

  test("the host's files, which no change reaches", async () => {
    const before = bash("ls -A /usr /usr/local/bin /etc /home /root /opt; md5sum /etc/host.conf /usr/bin/env");
    await says(
      "echo x >> /etc/host.conf; rm -rf /usr/bin/env /home; mkdir -p /usr/local/new; mv /etc/hostname /root/h; chmod 777 /etc; touch /root/new",
    );
    expect(await says("test -e /usr/bin/env || test -e /home || tail -n 1 /etc/host.conf")).toBe("x");
    expect(bash("ls -A /usr /usr/local/bin /etc /home /root /opt; md5sum /etc/host.conf /usr/bin/env")).toBe(before);
  });

  test("nothing of the store, of what is hidden and of credentials, by no way", async () => {
    const { store } = machine;
    for (const way of ["", "/proc/1/root", "/proc/1/cwd", "/proc/2/root", "/proc/self/root"])
      expect([way, await fails(`ls -A ${way}${store} | grep .`)]).toEqual([way, true]);
    for (const name of credentials)
      expect([name, await fails(`grep . ${home}/${name} /proc/2/root${home}/${name}`)]).toEqual([name, true]);
    const folder = join(home, "hidden");
    expect(await fails(`umount ${folder} || rm -rf ${folder} || mv ${home} /root/moved`)).toBe(true);
    expect(await fails(`unshare -Urm sh -c 'umount ${folder} && cat ${folder}/secret'`)).toBe(true);
    expect(await says("ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c agentrewind-machine || true")).toBe("0");
  });

  test.each([
    ["the kernel's settings", "echo 1 > /proc/sys/vm/drop_caches"],
    ["of the host's name", "echo x > /proc/sys/kernel/hostname"],
    ["a system request", "echo h > /proc/sysrq-trigger"],
    ["sysfs", "echo 1 > /sys/kernel/mm/ksm/run"],
    ["control groups", "mkdir /sys/fs/cgroup/x || ls /sys/fs/cgroup | grep ."],
    ["a mount", "mount -t tmpfs t /mnt"],
    ["a bind mount", "mount --bind /etc /mnt"],
    ["an unmount", "umount /proc/sys || umount /tmp"],
    ["a namespace of mounts", "unshare -m true"],
    ["the host's disk", `mknod /tmp/disk b ${rootDevice} && head -c 1 /tmp/disk`],
    ["a device of the host's", `head -c 1 ${home}/device`],
    ["memory", "mknod /dev/mem1 c 1 1 && head -c 1 /dev/mem1"],
    ["another name", "hostname other"],
    ["the clock", "date -s 10:00"],
    ["the first process", "cat /proc/1/environ | grep ."],
    ["the kernel's log", "dmesg"],
  ])("%s cannot be reached", async (_, command) => {
    expect(await fails(command)).toBe(true);
  });

  test("signals end at its border", async () => {
    expect(await fails(`kill -0 ${process.pid} || kill -0 ${process.ppid}`)).toBe(true);
    await machine.exec("kill -9 1");
    expect(await says("echo alive")).toBe("alive");
  });

  test("who ends everything inside goes on with the same files, and the next state says so", async () => {
    await says("cd; echo kept > /tmp/file-of-before; sleep 1000 &");
    await machine.exec(["sh", "-c", "kill -9 -1"]).catch(() => {});
    expect(await says("cat /tmp/file-of-before; jobs; rm /tmp/file-of-before")).toBe("kept");
    const { problems, manifest } = await machine.environment.capture().captured;
    expect(problems).toContainEqual({ path: "processes", reason: expect.stringContaining("ended, from inside") });
    await machine.environment.restore(manifest);
    expect(await says("echo alive")).toBe("alive");
  });

  test("root can be another user and come back, and users are kept apart", async () => {
    expect(await says("id -u; id -g; id -G; hostname; umask")).toBe("0\n0\n0\nsandbox\n0022");
    await says("useradd -m -s /bin/bash tester");
    const as = (command: string) => `su tester -c '${command}'`;
    expect(await says(as("id -un; touch /tmp/theirs ~/own; stat -c %U ~/own"))).toBe("tester\ntester");
    for (const command of ["cat /etc/shadow", "ls /root", "rm -f /tmp/a", "ls /run/agentrewind/calls"])
      expect([command, await fails(as(command))]).toEqual([command, true]);
    // A program of root's that has the set-user-id bit.
    await says("cp $(command -v id) /usr/local/bin/rid; chmod 4755 /usr/local/bin/rid");
    expect(await says(as("rid -un"))).toBe("root");
  });

  test("packages are unpacked and removed", async () => {
    await says(
      "mkdir -p /tmp/p/DEBIAN /tmp/p/usr/share/p; printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: p\\n' > /tmp/p/DEBIAN/control; echo p > /tmp/p/usr/share/p/f; dpkg-deb -b /tmp/p /tmp/p.deb; dpkg -i /tmp/p.deb",
    );
    expect(await says("dpkg -s p | grep Status; cat /usr/share/p/f")).toBe("Status: install ok installed\np");
    expect(existsSync("/usr/share/p")).toBe(false);
    await says("dpkg -r p");
  });

  test("after a rewind with processes the settings are closed as before", async () => {
    await machine.exec("sleep 300 &");
    const { manifest } = await machine.environment.capture().captured;
    expect(manifest.processes).not.toBeNull();
    await machine.environment.restore(manifest);
    expect(await fails("echo 1 > /proc/sys/vm/drop_caches")).toBe(true);
    expect(await fails("mount -t tmpfs t /mnt")).toBe(true);
    expect(await fails("mknod /tmp/n c 1 1")).toBe(true);
    expect(await says("jobs -r; hostname")).toMatch(/sleep 300.*\nsandbox$/);
  });

  test("a file that the host changes below is seen where nothing covers it", async () => {
    const file = `/opt/agentrewind-below-${process.pid}`;
    try {
      writeFileSync(file, "host");
      expect(await says(`cat ${file}`)).toBe("host");
      await says(`echo inside > ${file}`);
      writeFileSync(file, "host again");
      expect(await says(`cat ${file}`)).toBe("inside");
    } finally {
      rmSync(file);
    }
  });
});

describe.skipIf(!ready)("a place", () => {
  const machines: Machine[] = [];
  const mounted: string[] = [];
  const folders: string[] = [];
  const open = async (options: Parameters<typeof openMachine>[0]): Promise<Machine> => {
    const machine = await openMachine(options);
    machines.push(machine);
    return machine;
  };
  const folder = (parent: string): string => {
    const made = mkdtempSync(join(parent, "agentrewind-place-"));
    folders.push(made);
    return made;
  };
  afterEach(async () => {
    for (const machine of machines.splice(0)) await machine.end();
    for (const path of mounted.splice(0).reverse()) execFileSync("umount", [path]);
    for (const path of folders.splice(0)) execFileSync("rm", ["-rf", path]);
  });

  /** It is seen, changed and brought back inside, and the host's is as before. */
  async function expectOwn(workspace: string): Promise<void> {
    writeFileSync(join(workspace, "f"), "host\n");
    const machine = await open({ workspace });
    expect(await machine.says("pwd; cat f")).toBe(`${workspace}\nhost`);
    const { manifest } = await machine.environment.capture().captured;
    await machine.says("echo inside > f; mkdir d");
    const { restored } = await machine.environment.restore(manifest);
    expect([restored.changed, restored.removed]).toEqual([["f"], ["d"]]);
    expect(await machine.says("cat f; ls")).toBe("host\nf");
    expect(readFileSync(join(workspace, "f"), "utf8")).toBe("host\n");
  }

  test("on another file system of the host, and bound from elsewhere", async () => {
    const point = folder("/opt");
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", point]);
    mounted.push(point);
    mkdirSync(join(point, "a/b"), { recursive: true });
    await expectOwn(join(point, "a/b"));
    const bound = folder("/opt");
    execFileSync("mount", ["--bind", join(point, "a"), bound]);
    mounted.push(bound);
    await expectOwn(join(bound, "b"));
  });

  test.each([["/dev/shm"], ["/opt"]])("below %s", async (parent) => {
    await expectOwn(folder(parent));
  });

  test("that it has of its own is refused", async () => {
    expect(await codeOf(openMachine({ workspace: "/proc/self" }))).toBe("BAD_ARGUMENT");
    expect(await codeOf(openMachine({ workspace: "/opt/agentrewind-none" }))).toBe("BAD_ARGUMENT");
  });

  test("`mounts` are seen beside the workspace, and changed inside alone", async () => {
    const point = folder("/opt");
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", point]);
    mounted.push(point);
    writeFileSync(join(point, "f"), "host");
    expect(await (await open({})).says(`ls -A ${point}`)).toBe("");
    const machine = await open({ mounts: [point] });
    expect(await machine.says(`cat ${point}/f; echo inside > ${point}/f; cat ${point}/f`)).toBe("hostinside");
    expect(readFileSync(join(point, "f"), "utf8")).toBe("host");
  });

  test("another root, with nothing of the host's but the workspace", async () => {
    const root = folder("/opt");
    chmodSync(root, 0o755);
    const programs = "bash cat ls echo mkdir".split(" ").map((name) => `$(type -P ${name})`);
    bash(
      `for f in ${programs.join(" ")}; do for l in $f $(ldd $f | grep -o '/[^ ]*'); do mkdir -p ${root}$(dirname $l); cp -L $l ${root}$l; done; done; mkdir -p ${root}/etc; echo other > ${root}/etc/name`,
    );
    const machine = await open({ rootfs: root });
    expect(await machine.says("cat /etc/name; ls /etc; pwd")).toBe(`other\nname\n${machine.workspace}`);
    const { manifest } = await machine.environment.capture().captured;
    await machine.says("echo changed > /etc/name; echo f > f");
    await machine.environment.restore(manifest);
    expect(await machine.says("cat /etc/name; ls -A")).toBe("other");
    expect(readFileSync(join(root, "etc/name"), "utf8")).toBe("other\n");
  });

  test("a network of its own has loopback and nothing of the host's", async () => {
    const server = createServer((socket) => socket.end("host")).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    try {
      const reach = `cat </dev/tcp/127.0.0.1/${port}`;
      const own = await open({ network: "own" });
      expect((await own.exec(reach)).exitCode).toBe(1);
      expect(await own.says("ls /sys/class/net; grep -c : /proc/net/dev")).toMatch(/1$/);
      expect((await (await open({})).exec(reach)).stdout).toBe("host");
    } finally {
      server.close();
    }
  });
});
