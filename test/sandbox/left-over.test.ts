// What a sandbox keeps beside its layers: images of processes (F-64), and how it was left (F-65).
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ParkingNote } from "../../src/environment/sandbox/park.ts";
import { ImageStore } from "../../src/environment/sandbox/processes/image-store.ts";
import { isSameImage } from "../../src/environment/sandbox/processes/same-image.ts";
import { makePlace } from "../helpers/workspace.ts";

const about = {
  kind: "memory" as const,
  files: "s1",
  lastPid: 7,
  processes: [],
  ports: [8080],
  criu: "4.2",
  kernel: "6.18",
} as const;

describe("F-64", () => {
  const open = (): { images: ImageStore; folder: string } => {
    const folder = join(makePlace().base, "images");
    return { images: new ImageStore(folder), folder };
  };

  test("a dump has a name when it is complete, and not before", async () => {
    const { images, folder } = open();
    const begun = images.begin();
    writeFileSync(join(begun, "core-2.img"), "core");
    expect(images.names()).toEqual([]);
    const name = images.commit(begun, about);
    expect(images.names()).toEqual([name]);
    expect(images.about(name)).toEqual(about);
    await images.sync(name);
    await images.drop(name);
    expect([images.has(name), readdirSync(folder)]).toEqual([false, []]);
  });

  test("what a killed process left half done goes, what is complete stays", async () => {
    const { images, folder } = open();
    const name = images.commit(images.begin(), about);
    images.begin();
    await images.clean();
    expect(readdirSync(folder)).toEqual([name]);
  });

  test("no name leads out of the folder", () => {
    const { images, folder } = open();
    mkdirSync(join(folder, "..", "p-1"));
    writeFileSync(join(folder, "..", "p-1", "about.json"), "{}");
    expect([images.has("../p-1"), images.has("p-1/../../p-1"), images.has("")]).toEqual([false, false, false]);
  });

  test("two dumps are the same where all but what tells of the dump is equal", async () => {
    const { folder } = open();
    const dump = (name: string, files: Record<string, string>): string => {
      mkdirSync(join(folder, name));
      for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, name, file), content);
      return join(folder, name);
    };
    const one = { "core-2.img": "12345678", "pages-1.img": "x".repeat(4096), "stats-dump": "1", "dump.log": "a" };
    const base = dump("a", one);
    expect(
      await isSameImage(dump("b", { ...one, "stats-dump": "2", "inventory.img": "3", "dump.log": "bb" }), base),
    ).toBe(true);
    expect(await isSameImage(dump("c", { ...one, "core-2.img": "12345679" }), base)).toBe(false);
    expect(await isSameImage(dump("d", { ...one, "pages-1.img": `${"x".repeat(4095)}y` }), base)).toBe(false);
    expect(await isSameImage(dump("e", { ...one, "files.img": "" }), base)).toBe(false);
  });
});

describe("F-65", () => {
  test("what was parked is told once it was written, and a note that is none is no note", async () => {
    const { store } = makePlace();
    const note = new ParkingNote(store, "e1");
    expect([note.read(), note.options()]).toEqual([undefined, {}]);
    await note.write({ files: "s1", processes: "p-1" }, { network: "own" });
    expect(new ParkingNote(store, "e1").read()).toEqual({ files: "s1", processes: "p-1" });
    expect(new ParkingNote(store, "e1").options()).toEqual({ network: "own" });
    expect(new ParkingNote(store, "e2").read()).toBeUndefined();
    await note.write(null, {});
    expect(note.read()).toBeUndefined();
    writeFileSync(join(store, "sandboxes", "e1.json"), "{");
    expect([note.read(), note.options()]).toEqual([undefined, {}]);
  });
});
