// Keeps docs and code together: every rule of the format has a test, every error code its heading.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (file) => readFileSync(join(root, file), "utf8");
const list = (...patterns) =>
  execFileSync("git", ["ls-files", "-co", "--exclude-standard", ...patterns], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter(Boolean);

const problems = [];

const rules = new Set([...read("docs/format.md").matchAll(/^- \*\*(F-\d+)\*\*/gm)].map((match) => match[1]));
const named = new Map();
for (const file of list("test/**/*.ts", "test/*.ts")) {
  for (const match of read(file).matchAll(/\bF-\d+\b/g)) named.set(match[0], file);
}
for (const rule of rules) if (!named.has(rule)) problems.push(`docs/format.md: no test names ${rule}`);
for (const [rule, file] of named)
  if (!rules.has(rule)) problems.push(`${file}: names ${rule}, which docs/format.md does not have`);

const codes = new Set([...read("src/errors.ts").matchAll(/^ {2}"([A-Z_]+)",$/gm)].map((match) => match[1]));
const headings = new Set([...read("docs/errors.md").matchAll(/^## ([A-Z_]+)$/gm)].map((match) => match[1]));
for (const code of codes) if (!headings.has(code)) problems.push(`docs/errors.md: no heading for ${code}`);
for (const code of headings) if (!codes.has(code)) problems.push(`docs/errors.md: ${code} is no error code`);
const source = list("src/**/*.ts", "src/*.ts", "adapters/**/*.ts")
  .filter((file) => file !== "src/errors.ts")
  .map(read)
  .join("\n");
for (const code of codes)
  if (!source.includes(`"${code}"`) && !["DISK_FULL", "WRITE_FAILED"].includes(code))
    problems.push(`src/errors.ts: ${code} is never used`);

for (const file of list("*.md", "docs/*.md")) {
  for (const match of read(file).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
    const target = join(file, "..", match[1]);
    if (list(target).length === 0) problems.push(`${file}: links to ${match[1]}, which is not there`);
  }
}

for (const line of problems) console.error(line);
if (problems.length > 0) process.exit(1);
