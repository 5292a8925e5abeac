// Gets the programs that a sandbox needs, CRIU and mkfs.btrfs: those of the machine, a private copy, or from the archive of Debian or Ubuntu. Installs nothing on the machine.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { obtain } from "./sandbox-tools/obtain.mjs";
import { selfTest } from "./sandbox-tools/self-test.mjs";

const { values } = parseArgs({ options: { json: { type: "boolean", default: false } } });
const built = fileURLToPath(new URL("../dist/src/environment/sandbox/tools.js", import.meta.url));
if (!existsSync(built)) {
  console.error("agentrewind: the package is not built: run `npm run build` first.");
  process.exit(2);
}
const { compareVersions, findCriu, findMkfsBtrfs, oldestCriu, toolsFolder } = await import(built);

const tools = [
  {
    key: "criu",
    name: "CRIU",
    package: "criu",
    find: (search) => findCriu({ ...search, refuse: selfTest }),
    isEnough: (version) => compareVersions(version, oldestCriu) >= 0,
    /** Newer than what the machine's own suite has. */
    newer: true,
  },
  {
    key: "mkfsBtrfs",
    name: "mkfs.btrfs",
    package: "btrfs-progs",
    find: findMkfsBtrfs,
    isEnough: () => true,
    newer: false,
  },
];

const results = {};
for (const tool of tools) {
  const found = await tool.find({});
  results[tool.key] = found.tool === null ? await obtain(tool, found, toolsFolder()) : { ...found, from: null };
}

const ok = Object.values(results).every(({ tool }) => tool !== null);
if (values.json) {
  const entries = tools.map(({ key }) => {
    const { status, tool, reason, from } = results[key];
    return [key, { status, version: tool?.version ?? null, command: tool?.command ?? null, reason, from }];
  });
  console.log(JSON.stringify({ ok, ...Object.fromEntries(entries) }));
} else {
  for (const { key, name } of tools) {
    const { tool, reason, from } = results[key];
    if (tool === null) console.log(`${name} is not to be had: ${reason}.`);
    else console.log(`${name} ${reason}${from === null ? "" : ` (from ${from})`}`);
  }
}
process.exit(ok ? 0 : 1);
