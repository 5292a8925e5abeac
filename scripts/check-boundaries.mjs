// Dependencies between rooms point one way, and no files import each other in a circle.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const shared = [
  "src/errors.ts",
  "src/faults.ts",
  "src/write-faults.ts",
  "src/breathe.ts",
  "src/progress.ts",
  "src/events.ts",
];

/** Rooms whose changes of files must all be seen by write-faults.ts, and the files that see to it. */
const watched = [
  "src/store/",
  "src/environment/directory/",
  "src/environment/sandbox/layers/",
  "src/bundle/",
  "src/fork.ts",
];
const watchers = [
  "src/store/io.ts",
  "src/environment/directory/posix-native.ts",
  "src/environment/directory/posix-portable.ts",
];
const changes =
  /\b(?:append|chmod|chown|copyFile|cp|fchmod|fchown|fdatasync|fsync|ftruncate|futimes|lchown|link|lutimes|mkdir|mkdtemp|rename|rm|rmdir|symlink|truncate|unlink|utimes|write|writeFile|writev|appendFile|createWriteStream)(?:Sync)?\b/;
const fileSystem = /(?:^|\n)\s*import\s([^"';]*?)\sfrom\s*"(?:node:)?fs(?:\/promises)?"/g;
const writingOpen = /\bopen(?:Sync)?\([^;]*(?:"(?:[wa]x?\+?|r\+)"|O_WRONLY|O_RDWR|O_CREAT)/;

/** Room (longest prefix wins) -> what its files may import besides the room itself and the shared leaves. "agentrewind" is the public name. */
export const rules = {
  "src/errors.ts": [],
  "src/faults.ts": [],
  "src/write-faults.ts": [],
  "src/breathe.ts": [],
  "src/progress.ts": [],
  "src/events.ts": [],
  "src/native.ts": [],
  "src/terminate.ts": [],
  "src/workspace.ts": [],
  "src/store/": [],
  "src/inspector/ebpf/": ["src/native.ts"],
  "src/environment/": ["src/store/", "src/native.ts"],
  "src/coordinator/": ["src/environment/environment.ts"],
  "src/coordinator/engine/": ["src/store/lock.ts", "src/store/socket.ts"],
  "src/session/": ["src/coordinator/", "src/environment/environment.ts", "src/store/"],
  "src/bundle/": ["src/store/", "src/environment/", "src/native.ts", "src/workspace.ts"],
  "src/wire/": [],
  "src/text/": [],
  "src/observe/": [
    "src/session/",
    "src/coordinator/policy/",
    "src/environment/environment.ts",
    "src/store/",
    "src/text/",
  ],
  "src/observe/outside/": ["src/observe/", "src/session/", "src/coordinator/policy/", "src/environment/"],
  "src/observed.ts": ["src/"],
  "src/observed-sandbox.ts": ["src/"],
  "src/relay/": ["src/session/", "src/wire/"],
  "src/tools/": ["src/environment/environment.ts", "src/session/moment.ts", "src/session/texts.ts"],
  "src/conformance/": ["src/environment/environment.ts", "src/index.ts"],
  "src/rewind.ts": ["src/"],
  "src/environments.ts": ["src/"],
  "src/bundles.ts": ["src/"],
  "src/fork.ts": ["src/"],
  "src/orphans.ts": ["src/"],
  "src/opened.ts": ["src/"],
  "src/open-options.ts": ["src/"],
  "src/index.ts": ["src/"],
  "src/reader.ts": ["src/"],
  "src/upkeep.ts": ["src/"],
  "src/cli/": ["src/"],
  "adapters/": ["agentrewind"],
  "examples/": ["agentrewind"],
  "bench-mettle/": ["agentrewind"],
};

const importPattern = /(?:^|\n)\s*(?:import|export)\s(?:[^"';]*?\sfrom\s*)?"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/g;

export function importsOf(text) {
  return [...text.matchAll(importPattern)].map((match) => match[1] ?? match[2]);
}

const roomOf = (file) =>
  Object.keys(rules)
    .filter((room) => file === room || (room.endsWith("/") && file.startsWith(room)))
    .sort((a, b) => b.length - a.length)[0];

/** @param files path -> text. Returns one line per violation. */
export function violations(files) {
  const found = [];
  const graph = new Map();
  for (const [file, text] of Object.entries(files)) {
    const room = roomOf(file);
    if (room === undefined) {
      found.push(`${file}: belongs to no room (scripts/check-boundaries.mjs)`);
      continue;
    }
    const targets = [];
    for (const specifier of importsOf(text)) {
      const own = specifier === "agentrewind" || specifier.startsWith("agentrewind/");
      if (!specifier.startsWith(".") && !own) continue;
      const target = own ? "agentrewind" : join(dirname(file), specifier);
      if (!own) targets.push(target);
      const inRoom = room.endsWith("/") ? target.startsWith(room) : target === room;
      const allowed = rules[room].some((one) => target === one || (one.endsWith("/") && target.startsWith(one)));
      const leaf = shared.includes(target) && room.startsWith("src/");
      if (!inRoom && !allowed && !leaf) found.push(`${file} must not import ${specifier}`);
    }
    if (watched.some((one) => file.startsWith(one)) && !watchers.includes(file)) {
      for (const [, names] of text.matchAll(fileSystem)) {
        const change = names.includes("*") ? ["* as fs"] : changes.exec(names);
        if (change !== null) found.push(`${file} must change files through src/store/io.ts, not by ${change[0]}`);
      }
      if (text.includes('"node:fs"') && writingOpen.test(text))
        found.push(`${file} must open files for writing through src/store/io.ts`);
    }
    graph.set(file, targets);
  }
  return [...found, ...cycles(graph)];
}

function cycles(graph) {
  const state = new Map();
  const found = [];
  const visit = (file, path) => {
    if (state.get(file) === "done" || !graph.has(file)) return;
    if (state.get(file) === "open") {
      found.push(`import cycle: ${[...path.slice(path.indexOf(file)), file].join(" -> ")}`);
      return;
    }
    state.set(file, "open");
    for (const next of graph.get(file)) visit(next, [...path, file]);
    state.set(file, "done");
  };
  for (const file of graph.keys()) visit(file, []);
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const { execFileSync } = await import("node:child_process");
  const tracked = execFileSync(
    "git",
    ["ls-files", "-co", "--exclude-standard", "src", "adapters", "examples", "bench-mettle"],
    {
      cwd: root,
      encoding: "utf8",
    },
  )
    .split("\n")
    .filter((file) => file.endsWith(".ts") && !file.startsWith("examples/demo/repo/"));
  const found = violations(Object.fromEntries(tracked.map((file) => [file, readFileSync(join(root, file), "utf8")])));
  for (const line of found) console.error(line);
  if (found.length > 0) process.exit(1);
}
