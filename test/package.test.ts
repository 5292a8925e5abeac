// The tarball that npm would publish, installed in an empty project: its imports, its types, its command, its addon.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");

const program = `
import { openRewind, isRewindError, type Checkpoint } from "agentrewind";
import { rewindMiddleware } from "agentrewind/langchain";
import { rewindGraph } from "agentrewind/langgraph";
import { environmentSuite } from "agentrewind/conformance";

const rewind = await openRewind({ workspace: "./place", store: "./store" });
const made: Checkpoint = await rewind.thread("t").checkpoint({ context: { messages: ["a"] } });
const middleware = rewindMiddleware(rewind);
console.log(JSON.stringify({ id: made.id, graph: rewindGraph(rewind).tools.map((one) => one.name), name: middleware.name, suite: typeof environmentSuite, lacks: rewind.environment.capabilities.lacks }));
await rewind.close();
try {
  await openRewind({ workspace: "./place", store: "./place/store" });
} catch (error) {
  if (!isRewindError(error, "STORE_INSIDE_WORKSPACE")) throw error;
}
`;

test("an empty project installs it, imports it with types, and runs its command", async () => {
  const project = mkdtempSync(join(tmpdir(), "arw-package-"));
  onTestFinished(() => rmSync(project, { recursive: true, force: true }));
  const { stdout: packed } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", project], {
    cwd: root,
  });
  const [tarball] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }];
  const shipped = tarball.files.map((file) => file.path);
  for (const path of [
    "README.md",
    "LICENSE",
    "dist/src/index.js",
    "dist/src/index.d.ts",
    "dist/adapters/langchain/index.js",
    "dist/adapters/langgraph/index.js",
    "dist/adapters/deepagents/index.js",
    "native/binding.gyp",
    "bpf/effects.bpf.c",
    "bpf/prebuilt/effects.bpf.o",
  ]) {
    expect(shipped).toContain(path);
  }
  expect(shipped.filter((path) => /^(test|examples|src|node_modules|native\/build)\//.test(path))).toEqual([]);

  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "empty", private: true, type: "module" }));
  mkdirSync(join(project, "place"));
  await run(
    "npm",
    [
      "install",
      "--ignore-scripts",
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
      "--legacy-peer-deps",
      join(project, tarball.filename),
    ],
    {
      cwd: project,
    },
  );
  const modules = join(project, "node_modules");
  for (const peer of ["langchain", "@langchain", "typescript", "@types"])
    symlinkSync(join(root, "node_modules", peer), join(modules, peer));
  cpSync(join(root, "node_modules/better-sqlite3/build"), join(modules, "better-sqlite3/build"), { recursive: true });
  await run(process.execPath, ["scripts/install.mjs"], { cwd: join(modules, "agentrewind") });
  expect(readdirSync(join(modules, "agentrewind/native/build/Release")).some((name) => name.endsWith(".node"))).toBe(
    true,
  );

  writeFileSync(join(project, "main.ts"), program);
  const options = {
    strict: true,
    module: "NodeNext",
    moduleResolution: "NodeNext",
    target: "ES2022",
    types: ["node"],
    skipLibCheck: true,
    outDir: "out",
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["main.ts"] }));
  await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "."], { cwd: project });
  const { stdout } = await run(process.execPath, ["out/main.js"], { cwd: project });
  expect(JSON.parse(stdout)).toEqual({
    id: "c0",
    graph: ["rewind", "list_checkpoints", "checkpoint"],
    name: "AgentRewind",
    suite: "function",
    lacks: process.getuid?.() === 0 ? [] : expect.any(Array),
  });

  const { stdout: listed } = await run(
    join(modules, ".bin/agentrewind"),
    ["--workspace", "place", "--store", "store", "--json", "list"],
    { cwd: project },
  );
  expect(JSON.parse(listed)).toHaveLength(1);
});
