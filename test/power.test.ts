// The power is cut at every moment of recorded sessions: what was promised durable is there, whole, whatever of the unflushed writes got to the disk.

import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "./capabilities.ts";
import { makePlace } from "./helpers/workspace.ts";
import type { ReplayOptions, ReplayResult } from "./power/replay.ts";
import type { SessionOptions } from "./power/session.ts";

const long = process.env.AGENTREWIND_LONG === "1";
const seed = Number(process.env.AGENTREWIND_SEED ?? 20_260_101);
const folder = resolve(import.meta.dirname, "power");
const source = ["-C", "agentrewind-source", "--import", "tsx"];
const lacks = lacking("root", "fuse", "loop", "compiler");
const title = lacks ? " (needs root, FUSE, loop devices and a C compiler)" : "";

let tools: string;
const compile = (name: string, ...flags: string[]): string => {
  const out = join(tools, name);
  execFileSync("cc", ["-O1", "-Wall", "-Werror", ...flags, "-o", out, join(folder, `${name}.c`)]);
  return out;
};
beforeAll(() => {
  if (lacks) return;
  tools = fs.mkdtempSync(join(fs.realpathSync("/tmp"), "agentrewind-power-"));
  compile("recorder");
  compile("nosync", "-shared", "-fPIC");
});
afterAll(() => {
  if (!lacks) fs.rmSync(tools, { recursive: true });
});

interface Form {
  readonly what: SessionOptions["what"];
  /** The workspace lies on the recorded disk as well. */
  readonly both: boolean;
  readonly limit: number;
  readonly preload?: string;
}

/** Records a session on a small ext4, then looks at what power cuts leave of it. */
function cutPower({ what, both, limit, preload }: Form): ReplayResult {
  const { base } = makePlace();
  const at = (name: string): string => join(base, name);
  for (const name of ["fuse", "disk", "replay"]) fs.mkdirSync(at(name));
  const image = at("image");
  fs.writeFileSync(image, "");
  fs.truncateSync(image, 32 << 20);
  const ext4 = ["-b", "4096", "-J", "size=4", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
  execFileSync("mkfs.ext4", ["-q", "-F", ...ext4, image]);
  fs.copyFileSync(image, at("live"));
  // The boot of the recorded session is not the boot that finds its disk.
  fs.writeFileSync(at("boot"), "11111111-2222-3333-4444-555555555555\n");
  const workspace = both ? at("disk/workspace") : at("workspace");
  const store = at("disk/store");
  const session: SessionOptions = { what, workspace, store, mark: at("fuse/mark"), digests: at("digests.json") };
  const script = [
    'mount --bind "$BASE/boot" /proc/sys/kernel/random/boot_id',
    'mount -o loop,noatime "$BASE/fuse/disk" "$BASE/disk"',
    `mkdir -p "$WORKSPACE"`,
    `LD_PRELOAD="$PRELOAD" "$@"`,
    'umount "$BASE/disk"',
  ].join(" && ");
  const recorded = spawnSync(
    join(tools, "recorder"),
    [
      at("live"),
      at("log"),
      at("fuse"),
      "sh",
      "-c",
      script,
      "sh",
      process.execPath,
      ...source,
      join(folder, "session.ts"),
      JSON.stringify(session),
    ],
    { encoding: "utf8", env: { ...process.env, BASE: base, WORKSPACE: workspace, PRELOAD: preload ?? "" } },
  );
  expect(recorded.status, recorded.stderr).toBe(0);
  if (!both) fs.renameSync(workspace, at("left"));
  const options: ReplayOptions = {
    image,
    log: at("log"),
    digests: at("digests.json"),
    folder: at("replay"),
    disk: at("disk"),
    workspace,
    store,
    workspaceCopy: both ? null : at("left"),
    seed,
    limit,
    subsets: long ? 20 : 4,
  };
  const replayed = spawnSync(
    "unshare",
    [
      "--mount",
      "--propagation",
      "private",
      process.execPath,
      ...source,
      join(folder, "replay.ts"),
      JSON.stringify(options),
    ],
    { encoding: "utf8", maxBuffer: 1 << 28 },
  );
  expect(replayed.status, replayed.stderr).toBe(0);
  return JSON.parse(replayed.stdout) as ReplayResult;
}

const report = ({ failures }: ReplayResult): string =>
  `AGENTREWIND_SEED=${seed}\n${failures.map(({ cut, message }) => `${cut}: ${message}`).join("\n")}`;

describe("the power is cut", () => {
  const forms = [
    ["F-20, F-21, F-25: the store on the disk", "turns", false, 20],
    ["F-20, F-21, F-25: the store and the workspace on the disk", "turns", true, 20],
    ["F-25, F-36 to F-39: the store, which is pruned, on the disk", "prune", false, 20],
  ] as const;
  for (const [name, what, both, limit] of forms) {
    test.skipIf(lacks)(`${name}${title}`, { timeout: 3_600_000 }, () => {
      const result = cutPower({ what, both, limit: long ? 1_000_000 : limit });
      if (long) console.info(`${result.tried} cuts of ${result.segments} segments, ${result.writes} writes`);
      expect(result.tried).toBeGreaterThanOrEqual(20);
      expect(result.failures.length, report(result)).toBe(0);
    });
  }

  test.skipIf(lacks)(`without fsync a promise is broken: the test can fail${title}`, { timeout: 600_000 }, () => {
    const { failures } = cutPower({ what: "turns", both: false, limit: 20, preload: join(tools, "nosync") });
    expect(failures.map((one) => one.message).join("\n")).toMatch(/was promised and is/);
  });
});
