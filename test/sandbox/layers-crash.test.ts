// SIGKILL at every step of what is done with layers: the next open finds a live folder of one state, and leaves nothing behind.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Layers } from "../../src/environment/sandbox/layers/layers.ts";
import { type FaultPoint, faultPoints } from "../../src/faults.ts";
import { lacking } from "../capabilities.ts";
import { digestTree } from "../helpers/digest.ts";
import { runLayers, type Step } from "./children.ts";
import { expectNoLoops, makePlace, mountsBelow, type Place, useLayers } from "./place.ts";

const kinds = [
  { kind: "btrfs", lacks: lacking("native", "root", "loop", "btrfs") },
  { kind: "copy", lacks: lacking("native", "root") },
] as const;
const ready = kinds.filter(({ lacks }) => !lacks).map(({ kind }) => kind);

interface Scene {
  readonly place: Place;
  /** Names and trees of two states; the second lies in the live folder, changed once more. */
  readonly names: readonly [string, string];
  readonly trees: readonly [string[], string[], string[]];
}

const first =
  "mkdir -p root/d tmp; echo 1 > root/a; ln root/a root/d/hard; mknod root/gone c 0 0; head -c 300000 /dev/zero > root/big";
const second = "rm -r root/d root/gone; echo 2 > root/a; mkdir root/e; chmod 700 tmp; echo 2 >> root/big";
const third = "echo 3 > root/e/x; rm root/big";

async function makeScene(kind: Layers["kind"]): Promise<Scene> {
  const place = makePlace();
  const layers = await useLayers(place, kind);
  const names: string[] = [];
  const trees: string[][] = [];
  for (const command of [first, second, third]) {
    execFileSync("bash", ["--norc", "-ec", command], { cwd: layers.live() });
    trees.push(digestTree(layers.live()));
    if (names.length < 2) names.push((await layers.snapshot()).name);
  }
  await layers.close();
  return { place, names: names as [string, string], trees: trees as [string[], string[], string[]] };
}

interface Scenario {
  readonly name: string;
  readonly steps: (scene: Scene) => Step[];
  /** What this scenario is about. Of the restores' own points, which test/crash.test.ts goes through, two. */
  readonly points: RegExp;
  /** On a store without an image. */
  readonly fresh?: boolean;
  readonly after: (scene: Scene, layers: Layers) => Promise<void>;
}

const ownPoints = /^layers\.(?:snapshot|reset|dropped|forked)|^restore\.(?:placed-one|applied)$/;
const live = (layers: Layers): string[] => digestTree(layers.live());

const scenarios: readonly Scenario[] = [
  {
    name: "open of a new store",
    fresh: true,
    points: /^layers\./,
    steps: () => [{ op: "open" }, { op: "sh", command: first }, { op: "snapshot" }, { op: "close" }],
    async after({ place }, layers) {
      expect(fs.readdirSync(place.store).filter((name) => name.includes(".new"))).toEqual([]);
      expect(layers.names().length).toBeLessThanOrEqual(1);
    },
  },
  {
    name: "snapshot",
    points: ownPoints,
    steps: () => [{ op: "open" }, { op: "snapshot" }, { op: "snapshot" }, { op: "close" }],
    async after({ trees, names }, layers) {
      expect(live(layers)).toEqual(trees[2]);
      const { name } = await layers.snapshot();
      expect(names).not.toContain(name);
      await layers.reset(names[0]);
      await layers.reset(name);
      expect(live(layers)).toEqual(trees[2]);
    },
  },
  {
    name: "reset",
    points: ownPoints,
    steps: ({ names }) => [{ op: "open" }, { op: "reset", name: names[0] }, { op: "close" }],
    async after({ trees, names }, layers) {
      expect([JSON.stringify(trees[0]), JSON.stringify(trees[2])]).toContain(JSON.stringify(live(layers)));
      await layers.reset(names[0]);
      expect(live(layers)).toEqual(trees[0]);
      expect((await layers.snapshot()).name).toBe(names[0]);
    },
  },
  {
    name: "reset to nothing",
    points: ownPoints,
    steps: () => [{ op: "open" }, { op: "reset", name: null }, { op: "close" }],
    async after({ trees }, layers) {
      const found = fs.readdirSync(layers.live());
      if (found.length > 0) expect(live(layers)).toEqual(trees[2]);
      await layers.reset(null);
      expect(fs.readdirSync(layers.live())).toEqual([]);
    },
  },
  {
    name: "drop",
    points: ownPoints,
    steps: ({ names }) => [{ op: "open" }, { op: "drop", name: names[1] }, { op: "close" }],
    async after({ trees, names }, layers) {
      expect(live(layers)).toEqual(trees[2]);
      await layers.drop(names[1]);
      expect(layers.has(names[1])).toBe(false);
    },
  },
  {
    name: "fork",
    points: ownPoints,
    steps: ({ names }) => [{ op: "open" }, { op: "fork", name: names[0], id: "e2" }, { op: "close" }],
    async after({ place, trees, names }, layers) {
      expect(live(layers)).toEqual(trees[2]);
      // Whoever forks notes it: what a kill left is removed and made again.
      const { kind } = layers;
      const left = await useLayers(place, kind, { id: "e2" });
      await left.discard();
      await left.close();
      const fork = await layers.fork(names[0], join(layers.live(), "..", "..", "e2"));
      expect(live(fork)).toEqual(trees[0]);
      await fork.close();
    },
  },
];

describe("F-60, F-61, F-62: killed at every step", () => {
  const hit = new Set<string>();

  for (const kind of ready) {
    for (const scenario of scenarios) {
      test(`${scenario.name}, ${kind}`, async () => {
        const make = (): Promise<Scene> =>
          scenario.fresh === true
            ? Promise.resolve({ place: makePlace(), names: ["", ""], trees: [[], [], []] })
            : makeScene(kind);
        const counted = await make();
        const log = join(counted.place.base, "points");
        const whole = runLayers(counted.place, kind, scenario.steps(counted), { AGENTREWIND_FAULT_LOG: log });
        for (const result of whole.results) expect(result.error, JSON.stringify(result)).toBeUndefined();
        const counts = new Map<string, number>();
        for (const point of fs.readFileSync(log, "utf8").trim().split("\n"))
          if (scenario.points.test(point)) counts.set(point, (counts.get(point) ?? 0) + 1);

        for (const [point, count] of counts) {
          for (let nth = 1; nth <= Math.min(count, 2); nth++) {
            const at = `${point}:${nth}`;
            const scene = await make();
            const ran = runLayers(scene.place, kind, scenario.steps(scene), { AGENTREWIND_FAULT: at });
            expect(ran.signal, `${at} was reached`).toBe("SIGKILL");
            hit.add(point);
            try {
              const layers = await useLayers(scene.place, kind);
              for (const name of layers.names()) expect(await layers.verify(name)).toEqual([]);
              await scenario.after(scene, layers);
              await layers.close();
              expect(mountsBelow(scene.place.base)).toEqual([]);
              await expectNoLoops(scene.place.base);
              if (kind === "btrfs") await expectTidy(scene.place);
            } catch (error) {
              (error as Error).message = `killed at ${at}: ${(error as Error).message}`;
              throw error;
            }
          }
        }
      });
    }
  }

  test.skipIf(ready.length < kinds.length)("every fault point was hit", () => {
    const own = (Object.keys(faultPoints) as FaultPoint[]).filter((point) => point.startsWith("layers."));
    expect(own.filter((point) => !hit.has(point))).toEqual([]);
  });
});

/** One live folder in each sandbox's. */
async function expectTidy(place: Place): Promise<void> {
  const layers = await useLayers(place, "btrfs");
  for (const sandbox of fs.readdirSync(join(place.store, "layers"))) {
    const names = fs.readdirSync(join(place.store, "layers", sandbox));
    expect(names.filter((name) => name !== "states")).toHaveLength(1);
  }
  await layers.close();
}
