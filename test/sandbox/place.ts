// A store with the layers of sandboxes for one test; what is mounted below it is unmounted when the test ends.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect } from "vitest";
import type { Layers } from "../../src/environment/sandbox/layers/layers.ts";
import { type LayersOptions, openLayers } from "../../src/environment/sandbox/layers/open.ts";
import { loadNative, type Native } from "../../src/native.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { mkfsBtrfs } from "../helpers/tools.ts";

export const native = loadNative().native as Native;

export interface Place {
  /** Holds everything of the test. */
  readonly base: string;
  readonly store: string;
}

const places: Place[] = [];
const stores: Store[] = [];
const opened: Layers[] = [];

export function makePlace(): Place {
  const base = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), "agentrewind-layers-"));
  const place = { base, store: join(base, "store") };
  fs.mkdirSync(place.store);
  places.push(place);
  return place;
}

export function optionsOf(place: Place, kind: Layers["kind"], id = "e1"): LayersOptions {
  const store = openStore(place.store);
  stores.push(store);
  return { store: place.store, id, kind, native, mkfs: mkfsBtrfs(), objects: store.open(id).objects, reserve: 8 << 20 };
}

export async function useLayers(
  place: Place,
  kind: Layers["kind"],
  more: Partial<LayersOptions> = {},
): Promise<Layers> {
  const layers = await openLayers({ ...optionsOf(place, kind, more.id), ...more });
  opened.push(layers);
  return layers;
}

export const mountsBelow = (folder: string): string[] =>
  fs
    .readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] as string)
    .filter((path) => path?.startsWith(`${folder}/`));

/** Loop devices over a file below the folder. */
export const loopsBelow = (folder: string): string[] =>
  fs
    .readdirSync("/sys/block")
    .filter((name) => name.startsWith("loop"))
    .filter((name) => {
      const file = join("/sys/block", name, "loop", "backing_file");
      return fs.existsSync(file) && fs.readFileSync(file, "utf8").startsWith(`${folder}/`);
    });

/** Whoever made a mount namespace meanwhile, or looked at the device, keeps it a little longer. */
export async function expectNoLoops(folder: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (loopsBelow(folder).length > 0 && Date.now() < deadline) await sleep(20);
  expect(loopsBelow(folder)).toEqual([]);
}

afterEach(async () => {
  for (const layers of opened.splice(0)) await layers.close();
  for (const store of stores.splice(0)) store.close();
  for (const { base } of places.splice(0)) {
    for (const path of mountsBelow(base).reverse()) execFileSync("umount", ["-l", path]);
    execFileSync("rm", ["-rf", base]);
  }
});
