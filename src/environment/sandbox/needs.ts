// What a sandbox needs of the machine: each with an answer, and how to get it. Looks only; nothing stays.
import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import type { ProbeResult } from "../environment.ts";
import { cgroup2Mount } from "./mount-table.ts";
import { runProgram } from "./run.ts";
import { findCriu, findMkfsBtrfs } from "./tools.ts";

export interface Need extends ProbeResult {
  readonly name: string;
  /** What to do where it is not available; "" where it is. */
  readonly hint: string;
}

type Answer = Omit<Need, "name">;

export async function sandboxNeeds(): Promise<Need[]> {
  if (process.platform !== "linux")
    return [{ name: "system", status: "unsupported", reason: "sandboxes exist on Linux only", hint: "" }];
  const answers: Record<string, Promise<Answer>> = {
    privileges: privileges(),
    namespaces: namespaces(),
    cgroup2: cgroup2(),
    overlay: overlay(),
    btrfs: fileSystem("btrfs"),
    loop: loop(),
    "mkfs.btrfs": findMkfsBtrfs(),
    criu: findCriu(),
  };
  const needs = Object.entries(answers).map(async ([name, answer]) => {
    const { status, reason, hint } = await answer;
    return { name, status, reason, hint };
  });
  return Promise.all(needs);
}

const available = (reason: string): Answer => ({ status: "available", reason, hint: "" });

/** By the bits of capabilities(7). */
const capabilities: Readonly<Record<string, number>> = {
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_DAC_READ_SEARCH: 2,
  CAP_FOWNER: 3,
  CAP_KILL: 5,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_NET_ADMIN: 12,
  CAP_SYS_CHROOT: 18,
  CAP_SYS_PTRACE: 19,
  CAP_SYS_ADMIN: 21,
  CAP_MKNOD: 27,
  CAP_CHECKPOINT_RESTORE: 40,
};

async function privileges(): Promise<Answer> {
  const status = await readFile("/proc/self/status", "utf8").catch(() => "");
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  const missing = missingCapabilities(effective);
  const isRoot = process.getuid?.() === 0;
  if (isRoot && missing.length === 0) return available("root");
  const lacks = missing.length === 0 ? "" : ` without ${missing.join(", ")}`;
  return {
    status: "unsupported",
    reason: `${isRoot ? "root" : "not root,"}${lacks}`,
    hint: isRoot ? "Give these capabilities to the container that this runs in." : "Run it as root.",
  };
}

export const missingCapabilities = (effective: bigint): string[] =>
  Object.entries(capabilities).flatMap(([name, bit]) => ((effective >> BigInt(bit)) & 1n ? [] : [name]));

async function namespaces(): Promise<Answer> {
  const kinds = ["--mount", "--pid", "--ipc", "--uts", "--net"];
  const { exitCode, stderr } = await runProgram(["unshare", ...kinds, "--fork", "true"]);
  if (exitCode === 0) return available("mount, PID, IPC, UTS, network");
  return {
    status: stderr.includes("ENOENT") ? "inconclusive" : "unsupported",
    reason: stderr.trim() || "they cannot be made",
    hint: "It needs root, a kernel with namespaces, the program unshare of util-linux, and a container that allows them.",
  };
}

async function cgroup2(): Promise<Answer> {
  const path = cgroup2Mount();
  if (path === undefined)
    return {
      status: "unsupported",
      reason: "no cgroup v2 is mounted",
      hint: "Mount it: `mount -t cgroup2 none FOLDER`.",
    };
  const writable = await access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (writable) return available(path);
  return {
    status: "unsupported",
    reason: `${path} cannot be written`,
    hint: "Run it as root, in a container whose cgroups are writable.",
  };
}

/** Tried in a mount namespace that ends with it: where the root is an overlay over an overlay, the kernel stacks no other one (FILESYSTEM_MAX_STACK_DEPTH). */
const stack = `
mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && mkdir /tmp/upper /tmp/work /tmp/merged &&
exec mount -t overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/merged`;

async function overlay(): Promise<Answer> {
  const known = await fileSystem("overlay");
  if (known.status !== "available") return known;
  const { exitCode, stderr } = await runProgram(["unshare", "--mount", "sh", "-c", stack]);
  if (exitCode === 0) return available("in the kernel, and over this machine's root");
  if (stderr.includes("ENOENT"))
    return { status: "inconclusive", reason: "it could not be tried without unshare", hint: "Install util-linux." };
  return {
    status: "unsupported",
    reason: `none can be mounted over this machine's root (${stderr.trim().split("\n")[0]})`,
    hint: "Run it as root, on a root that is not an overlay over an overlay itself, or give a folder with `sandbox: { rootfs }`.",
  };
}

async function fileSystem(name: string): Promise<Answer> {
  const known = (await readFile("/proc/filesystems", "utf8").catch(() => "")).split(/\s+/);
  if (known.includes(name)) return available("in the kernel");
  return { status: "inconclusive", reason: "not in the kernel yet", hint: `Try \`modprobe ${name}\`.` };
}

async function loop(): Promise<Answer> {
  const path = "/dev/loop-control";
  const usable = await access(path, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  if (usable) return available(path);
  return {
    status: "unsupported",
    reason: `${path} cannot be used`,
    hint: "Run it as root, with `modprobe loop`; a store that lies on btrfs does without.",
  };
}
