// Compiles bpf/ with clang: for this machine beside the addon, or with --prebuilt the object that the package carries for machines without clang.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(root, "bpf");
const name = "effects.bpf.o";

/** What the object is made of, in one number. */
export function sourcesDigest() {
  const hash = createHash("sha256");
  for (const below of ["", "kernel"]) {
    for (const file of readdirSync(join(folder, below)).sort()) {
      if (!/\.[ch]$/.test(file)) continue;
      hash
        .update(`${below}/${file}\0`)
        .update(readFileSync(join(folder, below, file)))
        .update("\0");
    }
  }
  return hash.digest("hex");
}

const told = (run) =>
  run.error?.message ?? run.stderr.split("\n").find((line) => /error/.test(line)) ?? `status ${run.status}`;

/** Makes the object and what tells of it. The reason where that fails, else undefined. */
export function buildBpf(target) {
  const clang = process.env.CLANG ?? "clang";
  const version = spawnSync(clang, ["--version"], { encoding: "utf8" });
  if (version.status !== 0) return "clang was not found";
  mkdirSync(target, { recursive: true });
  const made = join(target, `${name}.${process.pid}`);
  // Paths are told nowhere, so that the same sources give the same object.
  const args = ["-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-target", "bpf", "-mcpu=v3"];
  const place = [
    `-ffile-prefix-map=${folder}=bpf`,
    "-fdebug-compilation-dir=bpf",
    "-c",
    "effects.bpf.c",
    "-o",
    resolve(made),
  ];
  const run = spawnSync(clang, [...args, ...place], { encoding: "utf8", cwd: folder });
  if (run.status !== 0) return told(run).trim();
  // What debuggers read is left out where that can be done; what the kernel reads (BTF) stays.
  const strips = [process.env.LLVM_STRIP, "llvm-strip", "llvm-strip-14"].filter((one) => one !== undefined);
  strips.some((strip) => spawnSync(strip, ["-g", made]).status === 0);
  const about = { sources: sourcesDigest(), compiler: version.stdout.split("\n")[0] };
  writeFileSync(join(target, "effects.bpf.json"), `${JSON.stringify(about, null, 2)}\n`);
  renameSync(made, join(target, name));
  return undefined;
}

/** Whether the object there is of these sources. */
export function isFreshBpf(target) {
  const about = join(target, "effects.bpf.json");
  return (
    existsSync(join(target, name)) &&
    existsSync(about) &&
    JSON.parse(readFileSync(about, "utf8")).sources === sourcesDigest()
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const prebuilt = process.argv.includes("--prebuilt");
  const at = process.argv.indexOf("--into");
  const target =
    at > 0 ? process.argv[at + 1] : prebuilt ? join(folder, "prebuilt") : join(root, "native", "build", "Release");
  const reason = buildBpf(target);
  if (reason !== undefined) {
    console.error(`agentrewind: the programs for the kernel could not be built (${reason}).`);
    process.exit(1);
  }
}
