// npm's install script: builds the native addon. A failure is no error, because the portable path works without it.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildBpf, isFreshBpf } from "./build-bpf.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const native = join(root, "native");
const binary = join(native, "build", "Release", "agentrewind.node");
const fallback =
  "the portable path will be used, with lower fidelity (microsecond times, no xattrs, no devices, no paths longer than PATH_MAX)";

function say(sentence) {
  console.log(`agentrewind: ${sentence}`);
}

const ofLibrary = /\/criu-[^/]*\.c$/;
/** The program that makes sandboxes: static, because it also runs where the libraries are others. The library is loaded into CRIU. */
const inSandboxes = [
  { name: "agentrewind-sandbox", how: ["-static"], isPart: (file) => file.endsWith(".c") && !ofLibrary.test(file) },
  { name: "agentrewind-criu.so", how: ["-shared", "-fPIC"], isPart: (file) => ofLibrary.test(file) },
];

function buildForSandboxes() {
  const folder = join(native, "sandbox");
  const files = readdirSync(folder).map((name) => join(folder, name));
  for (const { name, how, isPart } of inSandboxes) {
    const target = join(native, "build", "Release", name);
    if (existsSync(target) && files.every((file) => statSync(file).mtimeMs < statSync(target).mtimeMs)) continue;
    mkdirSync(dirname(target), { recursive: true });
    const made = `${target}.${process.pid}`;
    const args = [...how, "-O2", "-std=gnu11", "-Wall", "-Wextra", "-o", made, ...files.filter(isPart)];
    const run = spawnSync(process.env.CC ?? "cc", args, { encoding: "utf8" });
    if (run.status === 0) {
      renameSync(made, target);
      continue;
    }
    const reason =
      run.error?.message ??
      run.stderr.split("\n").find((line) => /error|cannot find/.test(line)) ??
      `status ${run.status}`;
    say(
      `the program for sandboxes could not be built (${reason.trim()}); directories work without it; to get it, install a C compiler with its static library and run \`npm rebuild agentrewind\`.`,
    );
    return;
  }
}

function sources() {
  const files = [join(native, "binding.gyp")];
  for (const folder of ["core", "binding"]) {
    for (const name of readdirSync(join(native, folder))) files.push(join(native, folder, name));
  }
  files.push(join(root, "bpf", "effects.h"));
  return files;
}

function isFresh() {
  if (!existsSync(binary)) return false;
  const built = statSync(binary).mtimeMs;
  return sources().every((file) => statSync(file).mtimeMs < built);
}

/** The ways to run node-gyp, the one that npm offers to install scripts first. */
function* nodeGyps() {
  const packages = [];
  if (process.env.npm_execpath) packages.push(join(dirname(process.env.npm_execpath), "..", "node_modules"));
  const bin = dirname(process.execPath);
  packages.push(join(bin, "..", "lib", "node_modules", "npm", "node_modules"));
  packages.push(join(bin, "node_modules", "npm", "node_modules"));
  const scripts = packages.map((folder) => join(folder, "node-gyp", "bin", "node-gyp.js"));
  if (process.env.npm_config_node_gyp) scripts.unshift(process.env.npm_config_node_gyp);
  for (const script of scripts) if (existsSync(script)) yield [process.execPath, script];
  yield ["node-gyp"];
}

/** Node's own headers where they are installed beside it, so that none are downloaded. */
function headers() {
  if (process.env.npm_config_nodedir) return [];
  const prefix = join(dirname(process.execPath), "..");
  return existsSync(join(prefix, "include", "node", "common.gypi")) ? ["--nodedir", prefix] : [];
}

/** The reason for the failure, or undefined. */
function build() {
  // binding.gyp calls `node`; it must be the one that runs this.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}` };
  const [command, ...script] = nodeGyps().next().value;
  const args = [...script, "rebuild", "--directory", native, "--release", "--jobs", "max", ...headers()];
  const run = spawnSync(command, args, { cwd: root, env, encoding: "utf8", maxBuffer: 1 << 28 });
  if (run.error) return run.error.code === "ENOENT" ? "node-gyp was not found" : run.error.message;
  if (run.status === 0 && existsSync(binary)) return undefined;
  // What the compiler says, else what gyp says, else what node-gyp says.
  const lines = `${run.stderr}\n${run.stdout}`.split("\n");
  const find = (pattern) => lines.find((line) => pattern.test(line));
  const line = find(/: (fatal )?error: /) ?? find(/^\w*Error: /) ?? find(/ERR! stack /) ?? `status ${run.status}`;
  return line.replace(/^.*ERR! stack (Error: )?/, "").trim();
}

if (process.platform !== "linux") {
  say(`the native addon is built on Linux only; ${fallback}.`);
} else if (process.env.AGENTREWIND_SKIP_NATIVE === "1") {
  say(`AGENTREWIND_SKIP_NATIVE is set; ${fallback}.`);
} else if (isFresh()) {
  say("the native addon is up to date.");
} else {
  const reason = build();
  if (reason === undefined) {
    say("the native addon was built.");
  } else {
    say(
      `the native addon could not be built (${reason}); ${fallback}; ` +
        "to get it, install a C++17 compiler, make and Python 3 and run `npm rebuild agentrewind`.",
    );
  }
}

function buildForKernel() {
  const target = join(native, "build", "Release");
  if (isFreshBpf(target)) return;
  const reason = buildBpf(target);
  if (reason === undefined || reason === "clang was not found") return;
  say(`the programs for the kernel could not be built (${reason}); those that the package brings are used.`);
}

if (process.platform === "linux" && process.env.AGENTREWIND_SKIP_NATIVE !== "1") {
  buildForSandboxes();
  buildForKernel();
}
