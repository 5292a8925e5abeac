// Every code block of the docs compiles and runs: TypeScript against a model server, shell lines with the real command.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startModelServer } from "agentrewind/conformance";
import { expect, onTestFinished, test } from "vitest";
import { lacking } from "./capabilities.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const files = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith(".md"),
);

interface Block {
  readonly title: string;
  readonly language: string;
  readonly code: string;
}

const blocks: Block[] = files.flatMap((file) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match, index) => ({
    title: `${file}, block ${index + 1}`,
    language: match[1] as string,
    code: match[2] as string,
  })),
);

const typescript = blocks.filter((block) => block.language === "ts");

/** A folder with a workspace "repo" in it, and an environment whose store and model are our own. */
async function stage(): Promise<{ folder: string; env: NodeJS.ProcessEnv }> {
  const folder = mkdtempSync(join(tmpdir(), "arw-docs-"));
  mkdirSync(join(folder, "repo"));
  writeFileSync(join(folder, "repo", "data.csv"), "1;2;3\n");
  const server = await startModelServer({ decide: () => ({ content: "done" }), latencyMs: 5 });
  onTestFinished(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const env = {
    ...process.env,
    XDG_STATE_HOME: join(folder, "state"),
    OPENAI_API_KEY: "none",
    OPENAI_BASE_URL: server.baseUrl,
  };
  return { folder, env };
}

test("there are blocks to run, and all are of a kind that is run", () => {
  expect(typescript.length).toBeGreaterThan(1);
  expect(blocks.filter((block) => !["ts", "sh"].includes(block.language)).map((block) => block.title)).toEqual([]);
});

test("the TypeScript of all blocks compiles under strict, with the types that a user gets", async () => {
  const folder = mkdtempSync(join(root, "test", ".docs-types-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const compilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: ["node"] },
    ...{ module: "NodeNext", moduleResolution: "NodeNext", target: "ES2022", lib: ["ESNext", "DOM"] },
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  for (const { title, code } of typescript) writeFileSync(join(folder, `${title.replace(/\W+/g, "-")}.ts`), code);
  const compiler = [join(root, "node_modules/typescript/bin/tsc"), "-p", folder];
  const { stdout } = await run(process.execPath, compiler).catch((error: { stdout: string }) => error);
  expect(stdout).toBe("");
});

const needsSandbox = lacking("native", "root", "loop", "btrfs", "overlay", "cgroup2", "namespaces", "criu");

for (const { title, code } of typescript) {
  test.skipIf(needsSandbox && code.includes('environment: "sandbox"'))(`${title} runs`, async () => {
    const { folder, env } = await stage();
    const script = join(root, "test", `.docs-${process.pid}-${title.replace(/\W+/g, "-")}.mts`);
    writeFileSync(script, code);
    onTestFinished(() => rmSync(script, { force: true }));
    await run(
      process.execPath,
      ["-C", "agentrewind-source", "--import", join(root, "node_modules/tsx/dist/esm/index.mjs"), script],
      {
        cwd: folder,
        env,
      },
    );
  });
}

for (const { title, code } of blocks.filter((block) => block.language === "sh")) {
  test(`${title} runs`, async () => {
    const { folder, env } = await stage();
    const command = `agentrewind() { "${process.execPath}" "${join(root, "dist/src/cli/main.js")}" "$@"; }; set -e\n`;
    const { stdout } = await run("bash", ["--norc", "-c", command + code], { cwd: join(folder, "repo"), env });
    expect(stdout).not.toBe("");
  });
}
