// A dry run lists what the real run does, no more and no less: over random changes of small trees, of everything and of some paths.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import type { RewindResult } from "agentrewind";
import { expect, test } from "vitest";
import { digestTree } from "./helpers/digest.ts";
import { endSession, makePlace, useRewind } from "./helpers/workspace.ts";
import { makeRandom, type Random } from "./power/log.ts";

const only = process.env.AGENTREWIND_SEED;
const seeds = only === undefined ? Array.from({ length: 10 }, (_, i) => i + 1) : [Number(only)];
const names = ["a", "a/T", "a/b", "a/b/f", "c", "c/T", "d", "d/e", "d/e/f", "f", "z", "z/T"];

/** Whatever cannot be done is not done. */
function mutate(root: string, random: Random): void {
  const pick = (): string => join(root, names[random(names.length)] as string);
  const path = pick();
  const other = pick();
  const steps = [
    () => fs.mkdirSync(path, { recursive: true }),
    () => fs.writeFileSync(path, `${random(4)}`),
    () => fs.writeFileSync(path, `${random(4)}`),
    () => fs.linkSync(path, other),
    () => fs.linkSync(path, other),
    () => fs.rmSync(path, { recursive: true }),
    () => fs.symlinkSync("d", path),
    () => fs.chmodSync(path, 0o600 + random(2) * 0o40),
    () => fs.renameSync(path, other),
    () => fs.utimesSync(path, 1_000_000_000, 1_000_000_000),
  ];
  try {
    (steps[random(steps.length)] as () => void)();
  } catch {}
}

const listed = ({ restored, notRestored }: RewindResult): unknown => ({
  ...Object.fromEntries(Object.entries(restored).map(([kind, paths]) => [kind, [...paths].map(show).sort()])),
  notRestored: notRestored.map(show).sort(),
});
const show = (one: unknown): string => JSON.stringify(one);

for (const portable of [false, true]) {
  test(`random changes, ${portable ? "portable" : "native"}`, async () => {
    if (portable) process.env.AGENTREWIND_NATIVE = "off";
    try {
      for (const seed of seeds) await compare(seed, portable ? "us" : "ns");
    } finally {
      delete process.env.AGENTREWIND_NATIVE;
    }
  });
}

async function compare(seed: number, times: "ns" | "us"): Promise<void> {
  const place = makePlace();
  const digest = (): string[] => digestTree(place.workspace, { times });
  const random = makeRandom(seed);
  execFileSync(
    "sh",
    ["-c", "mkdir -p a/b d/e z c; echo 1 > a/T; ln a/T c/T; ln a/T z/T; echo 2 > d/e/f; ln d/e/f a/b/f; echo 3 > f"],
    {
      cwd: place.workspace,
    },
  );
  for (let i = 0; i < 8; i++) mutate(place.workspace, random);
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  await thread.checkpoint({ context: { messages: [] } });
  const then = digest();
  for (let i = 0; i < 8; i++) mutate(place.workspace, random);
  const now = digest();
  const known = [...new Set([...then, ...now].map((line) => JSON.parse(/^"[^"]*"/.exec(line)?.[0] as string)))].filter(
    (path) => path !== "",
  );
  const some = (): string[] => known.filter(() => random(3) === 0);
  for (const paths of [undefined, some(), some(), some().slice(0, 1), known.slice(0, 1)]) {
    if (paths?.length === 0) continue;
    const request = { to: "c0", ...(paths === undefined ? {} : { paths }) };
    const about = `AGENTREWIND_SEED=${seed} ${JSON.stringify(paths)}`;
    const dry = await thread.rewind({ ...request, dryRun: true });
    expect(digest(), about).toEqual(now);
    const real = await thread.rewind(request);
    expect(listed(dry), about).toEqual(listed(real));
    await thread.undo();
    expect(digest(), about).toEqual(now);
  }
  await endSession(rewind);
}
