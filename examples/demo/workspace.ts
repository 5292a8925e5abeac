// The demo's repository: a fresh copy to work in, and the verdict of the suite as it was shipped.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const template = fileURLToPath(new URL("./repo", import.meta.url));

/** What belongs to the suite and not to the work: the tests, and what the bank vouches for. */
const suite = ["test", "data/export.csv.sha256", "data/statement.json", "data/invoices.json", "package.json"];

/** A folder that goes away at the end of its scope. */
export function temporaryFolder(keep = false): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "agentrewind-demo-"));
  return {
    path,
    [Symbol.dispose]() {
      if (!keep) rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Copies the repository into `folder` and commits it. */
export function createRepository(folder: string): void {
  cpSync(template, folder, { recursive: true });
  renameSync(join(folder, "gitignore"), join(folder, ".gitignore"));
  git(folder, "init", "--quiet", "--template=", "--initial-branch=main");
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "--message=Import");
}

function git(folder: string, ...args: string[]): void {
  const who = ["-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false"];
  const env = { ...without(/^GIT_/), GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  try {
    execFileSync("git", [...who, ...args], { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] });
  } catch (error) {
    // The trap does not depend on git: without it the repository is just not under version control.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** Runs the shipped suite on a copy of the repository, so that neither edited tests nor the run itself change anything. */
export function suitePasses(folder: string): boolean {
  using copy = temporaryFolder();
  cpSync(folder, copy.path, { recursive: true });
  for (const path of suite) {
    rmSync(join(copy.path, path), { recursive: true, force: true });
    cpSync(join(template, path), join(copy.path, path), { recursive: true });
  }
  return (
    spawnSync(process.execPath, ["--test"], { cwd: copy.path, env: without(/^NODE_/), stdio: "ignore" }).status === 0
  );
}

function without(names: RegExp): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !names.test(name)));
}
