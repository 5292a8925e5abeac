// Every change of a file by what is done with layers fails once, as on a full or a broken disk: nothing is lost or mixed, and the retry succeeds.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Layers } from "../../src/environment/sandbox/layers/layers.ts";
import { armWriteFault } from "../../src/write-faults.ts";
import { lacking } from "../capabilities.ts";
import { digestTree } from "../helpers/digest.ts";
import { makePlace, native, type Place, useLayers } from "./place.ts";

const kinds = [
  { kind: "btrfs", lacks: lacking("native", "root", "loop", "btrfs") },
  { kind: "copy", lacks: lacking("native", "root") },
] as const;

/** Each side counts its own changes. */
const sides = {
  typescript: (fault: string | undefined): boolean => armWriteFault(fault),
  addon(fault: string | undefined): boolean {
    const [kind = "", nth = "0"] = fault?.split(":") ?? [];
    return native.armWriteFault(["", "ENOSPC", "EIO"].indexOf(kind), Number(nth));
  },
} as const;

const faults = process.env.AGENTREWIND_LONG === "1" ? ["ENOSPC", "EIO"] : ["EIO"];

afterEach(() => {
  for (const arm of Object.values(sides)) arm(undefined);
});

interface Scene {
  readonly place: Place;
  readonly layers: Layers;
  readonly name: string;
  readonly captured: string[];
  readonly live: string[];
  round: number;
}

async function makeScene(kind: Layers["kind"]): Promise<Scene> {
  const place = makePlace();
  const layers = await useLayers(place, kind);
  const run = (command: string): unknown => execFileSync("bash", ["--norc", "-ec", command], { cwd: layers.live() });
  run("mkdir -p root/d; echo 1 > root/a; echo 1 > root/d/b; ln -s a root/l");
  const { name } = await layers.snapshot();
  const captured = digestTree(layers.live());
  run("echo 22 > root/a; rm -r root/d; mkdir root/e; ln -sfn b root/l");
  return { place, layers, name, captured, live: digestTree(layers.live()), round: 0 };
}

const operations: Record<string, (scene: Scene) => Promise<void>> = {
  async snapshot({ layers, round }) {
    fs.writeFileSync(join(layers.live(), "root", "a"), `round ${round}`);
    await layers.snapshot();
  },
  reset: ({ layers, name }) => layers.reset(name),
  "reset to nothing": ({ layers }) => layers.reset(null),
  async fork({ layers, name, round }) {
    const fork = await layers.fork(name, join(layers.live(), "..", "..", `fork-${round}`));
    await fork.close();
  },
  async drop({ layers, round }) {
    fs.writeFileSync(join(layers.live(), "root", "a"), `round ${round}`);
    await layers.drop((await layers.snapshot()).name);
  },
};

describe.each(kinds)("layers of kind $kind", ({ kind, lacks }) => {
  for (const [operation, run] of Object.entries(operations)) {
    test.skipIf(lacks)(operation, async () => {
      let failed = 0;
      for (const [side, arm] of Object.entries(sides)) {
        for (const fault of faults) {
          let scene = await makeScene(kind);
          for (let nth = 1; ; nth++) {
            scene.round++;
            arm(`${fault}:${nth}`);
            const failure = await run(scene).then(
              () => undefined,
              (error: unknown) => error as { code?: string },
            );
            if (!arm(undefined)) {
              expect(failure).toBeUndefined();
              break;
            }
            failed++;
            const at = `${operation}, ${side}, ${fault}:${nth}`;
            if (failure !== undefined) expect(failure.code, at).toMatch(/^(?:DISK_FULL|WRITE_FAILED|RESTORE_FAILED)$/);
            expect(await scene.layers.verify(scene.name), at).toEqual([]);
            await scene.layers.close();
            const again = await useLayers(scene.place, kind);
            scene = { ...scene, layers: again };
            scene.round++;
            await run(scene);
            await again.reset(scene.name);
            expect(digestTree(again.live()), at).toEqual(scene.captured);
            expect((await again.snapshot()).name, at).toBe(scene.name);
          }
          await scene.layers.close();
        }
      }
      expect(failed).toBeGreaterThan(0);
    });
  }
});
