// Whether effects can be watched on this machine. A program that does nothing is loaded and forgotten; nothing stays.
import { existsSync, readFileSync } from "node:fs";
import { systemCode } from "../../errors.ts";
import { loadNative } from "../../native.ts";
import { objectFiles } from "./object.ts";

export interface EbpfProbe {
  readonly status: "available" | "unsupported" | "inconclusive";
  readonly reason: string;
}

const unsupported = (reason: string): EbpfProbe => ({ status: "unsupported", reason });

export function probeEbpf(): EbpfProbe {
  if (process.platform !== "linux") return unsupported("eBPF exists on Linux only");
  if (process.arch !== "x64")
    return unsupported(`the programs know the system calls of x86-64, not those of ${process.arch}`);
  const loaded = loadNative();
  if (loaded.native === null) return unsupported(`needs the addon: ${loaded.reason}`);
  const { native } = loaded;
  if (!existsSync("/sys/kernel/btf/vmlinux"))
    return unsupported("the kernel does not tell its types (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF");
  const library = native.probeLibbpf();
  if (library !== null) return unsupported(library);
  if (objectFiles().length === 0) return unsupported("the object with the programs is not there");
  try {
    native.tryBpf();
  } catch (error) {
    return refusal(systemCode(error) ?? String(error));
  }
  return { status: "available", reason: "the kernel takes programs" };
}

function refusal(code: string): EbpfProbe {
  if (code === "ENOSYS") return unsupported("the kernel has no bpf(2)");
  if (code !== "EPERM" && code !== "EACCES")
    return { status: "inconclusive", reason: `the kernel refused a program (${code})` };
  const lockdown = lockdownMode();
  if (lockdown === "confidentiality") return unsupported("the kernel is locked down (confidentiality)");
  if (process.getuid?.() !== 0) return unsupported("not root, without CAP_BPF and CAP_PERFMON");
  return unsupported(
    "the kernel refuses programs (EPERM): the container lacks CAP_BPF and CAP_PERFMON, or filters bpf(2)",
  );
}

function lockdownMode(): string | undefined {
  try {
    return /\[(\w+)\]/.exec(readFileSync("/sys/kernel/security/lockdown", "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
