// What the file system's own tree tells of two states and what a look at everything tells are the same, after random histories.
import * as fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { decodeDifferences } from "../../src/environment/sandbox/layers/difference.ts";
import type { LayerDifference } from "../../src/environment/sandbox/layers/layers.ts";
import { lacking } from "../capabilities.ts";
import { makeRandom } from "../power/log.ts";
import { makePlace, native, useLayers } from "./place.ts";

const seed = Number(process.env.AGENTREWIND_SEED ?? Date.now() % 1_000_000);
const rounds = process.env.AGENTREWIND_LONG === "1" ? 300 : 30;

async function collect(differences: AsyncIterable<LayerDifference>): Promise<string[]> {
  const lines: string[] = [];
  for await (const { path, before, after, differs } of differences)
    lines.push(`${path} ${before?.type} ${before?.inode} ${after?.type} ${after?.inode} ${differs}`);
  return lines.sort();
}

test.skipIf(lacking("native", "root", "loop", "btrfs"))(`F-61: seed ${seed}`, async () => {
  const random = makeRandom(seed);
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const layers = await useLayers(makePlace(), "btrfs");
  const folders = ["", "a", "b", "a/c", "a/c/d", "b/e"];
  const names = ["x", "y", "z"];
  const path = (): string => join(layers.live(), pick(folders), pick(names));
  /** Each may be impossible just now, which is no change. */
  const changes: (() => void)[] = [
    () => fs.writeFileSync(path(), "x".repeat(random(9000))),
    () => fs.writeFileSync(path(), `${10_000 + random(90_000)}`),
    () => fs.appendFileSync(path(), "more"),
    () => fs.truncateSync(path(), 3),
    () => fs.rmSync(path()),
    () => fs.renameSync(path(), path()),
    () => fs.linkSync(path(), path()),
    () => fs.chmodSync(path(), pick([0o600, 0o644])),
    () => fs.chmodSync(join(layers.live(), pick(folders)), pick([0o700, 0o755])),
    () => fs.utimesSync(path(), 1, 1),
    () => fs.symlinkSync(pick(names), path()),
    () => fs.renameSync(join(layers.live(), pick(folders)), join(layers.live(), pick(folders))),
    () => fs.rmSync(join(layers.live(), pick(folders.slice(1))), { recursive: true }),
    () => fs.mkdirSync(join(layers.live(), pick(folders)), { recursive: true }),
    () => fs.mkdirSync(join(layers.live(), pick(folders)), { recursive: true }),
  ];
  for (const folder of folders) fs.mkdirSync(join(layers.live(), folder), { recursive: true });
  const states = [(await layers.snapshot()).name];
  for (let round = 0; round < rounds; round++) {
    if (random(4) === 0) await layers.reset(pick(states));
    for (let i = random(8); i >= 0; i--) {
      try {
        pick(changes)();
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code, String(error)).toMatch(/^E[A-Z]+$/);
      }
    }
    const { name } = await layers.snapshot();
    if (!states.includes(name)) states.push(name);
    if (states.length > 12) {
      const gone = pick(states.filter((one) => one !== name));
      states.splice(states.indexOf(gone), 1);
      await layers.drop(gone);
    }
    for (const other of [pick(states), states.at(-2) ?? name]) {
      const [from, to] = [name, other].map((one) => fs.openSync(layers.folder(one) as string, "r")) as [number, number];
      const everything = await native.compareTrees(from, to, -1);
      for (const fd of [from, to]) fs.closeSync(fd);
      expect(await collect(layers.diff(name, other)), `${name} and ${other}`).toEqual(
        await collect(decodeDifferences(everything)),
      );
    }
  }
});
