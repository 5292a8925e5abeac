// Runs every check, fast things first, and stops at the first red step. Ends with one line: N passed, N failed, N skipped.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const unitOnly = process.argv.includes("--unit");
const long = process.argv.includes("--long");
const report = mkdtempSync(join(tmpdir(), "agentrewind-report-"));

const node = (...args) => [process.execPath, args];
const bin = (name) => join(root, "node_modules", ".bin", name);
const output = join(report, "vitest.json");

const environment = { ...process.env };
if (long)
  Object.assign(environment, { AGENTREWIND_HISTORIES: "1000", AGENTREWIND_KILLS: "2000", AGENTREWIND_LONG: "1" });

const checks = [
  ["types", bin("tsc"), ["-p", "."]],
  ["lint and format", bin("biome"), ["check", "--error-on-warnings", "."]],
  ["boundaries", ...node("scripts/check-boundaries.mjs")],
  ["docs", ...node("scripts/check-docs.mjs")],
  ["build", ...node("scripts/build.mjs")],
];
/** What is not to be had, it says in a sentence; tests that need it are skipped, unless AGENTREWIND_REQUIRE names it. */
const sandboxTools = process.platform === "linux" && process.getuid() === 0 && !unitOnly;
const tests = [
  "tests",
  bin("vitest"),
  [
    "run",
    ...(unitOnly ? ["--project", "unit"] : []),
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${output}`,
  ],
];

function run([name, command, args]) {
  const start = Date.now();
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit", env: environment });
  console.log(`${status === 0 ? "ok" : "FAILED"}: ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
  return status === 0;
}

let passed = 0;
let failed = 0;
let skipped = 0;
for (const check of checks) {
  if (run(check)) passed++;
  else {
    failed++;
    break;
  }
}
if (failed === 0) {
  if (sandboxTools) spawnSync(process.execPath, ["scripts/sandbox-tools.mjs"], { cwd: root, stdio: "inherit" });
  const green = run(tests);
  try {
    const result = JSON.parse(readFileSync(output, "utf8"));
    passed += result.numPassedTests;
    failed += result.numFailedTests;
    skipped += result.numPendingTests + result.numTodoTests;
    for (const file of result.testResults) {
      for (const one of file.assertionResults) {
        if (one.status === "pending" || one.status === "skipped") console.log(`skipped: ${one.fullName}`);
      }
    }
  } catch {
    console.log("The test runner left no report.");
  }
  if (!green && failed === 0) failed = 1;
}
rmSync(report, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed === 0 ? 0 : 1);
