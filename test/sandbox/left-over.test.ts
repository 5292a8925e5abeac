// What a sandbox keeps beside its layers: images of processes (F-64), and how it was left (F-65).
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ParkingNote } from "../../src/environment/sandbox/park.ts";
import { imageFiles } from "../../src/environment/sandbox/processes/image-files.ts";
import { ImageStore } from "../../src/environment/sandbox/processes/image-store.ts";
import { pagemap } from "../../src/environment/sandbox/processes/messages.ts";
import { encode, type Message } from "../../src/environment/sandbox/processes/protobuf.ts";
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

  test("an image that another one was made from stays until nobody needs that", async () => {
    const { images, folder } = open();
    const made = (parent?: string): string => {
      const begun = images.begin();
      if (parent !== undefined) symlinkSync(join("..", parent), join(begun, "parent"));
      return images.commit(begun, about);
    };
    const [first, other] = [made(), made()];
    const second = made(first);
    const third = made(second);
    expect([first, second, third].map((name) => images.chain(name))).toEqual([1, 2, 3]);
    await images.sync(third);
    await images.drop(first);
    await images.drop(second);
    expect(images.has(third)).toBe(true);
    const again = new ImageStore(folder);
    await again.drop(first);
    await again.drop(third);
    expect([again.has(second), again.names().length]).toEqual([true, 3]);
    await again.drop(second);
    expect(again.names()).toEqual([other]);
    const [lost, child] = [made(), made(other)];
    rmSync(join(folder, other), { recursive: true });
    expect([images.has(child), images.has(lost)]).toEqual([false, true]);
    await images.drop(child);
    expect(images.names()).toEqual([lost]);
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

  /** CRIU's files of one process's pages: `own` in this image, the others in the parent's, in the order of their addresses. */
  const pageFiles = (pages: readonly (readonly [address: number, own: string | null])[]): Record<string, Buffer> => {
    const framed = (message: Message<typeof pagemap>): Buffer => {
      const bytes = encode(pagemap, message);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return Buffer.concat([length, bytes]);
    };
    const entries = pages.map(([start, own]) =>
      framed({ vaddr_or_pages_id: start, compat_nr_pages: 1, flags: own === null ? 1 : 4, nr_pages: 1 }),
    );
    const own = pages.flatMap(([, text]) => (text === null ? [] : [Buffer.alloc(4096, text)]));
    return {
      "pagemap-2.img": Buffer.concat([Buffer.alloc(8, "magic"), framed({ vaddr_or_pages_id: 1 }), ...entries]),
      "pages-1.img": Buffer.concat(own),
    };
  };

  test("pages are compared, wherever they lie, and go into a bundle whole", async () => {
    const { folder } = open();
    const dump = (name: string, files: Record<string, Buffer>, parent?: string): string => {
      mkdirSync(join(folder, name));
      for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, name, file), content);
      if (parent !== undefined) symlinkSync(join("..", parent), join(folder, name, "parent"));
      return join(folder, name);
    };
    const core = { "core-2.img": Buffer.from("12345678") };
    const at = 0x7f00_0000_0000;
    const pages = (...contents: (string | null)[]) => pageFiles(contents.map((one, i) => [at + i * 4096, one]));
    const first = dump("p-1", { ...core, ...pages("a", "b", "c") });
    const second = dump("p-2", { ...core, ...pages(null, "x", null) }, "p-1");
    const third = dump("p-3", { ...core, ...pages("a", null, null) }, "p-2");
    const fewer = dump("p-4", { ...core, ...pages(null, null) }, "p-3");
    const same = async (one: string, other: string): Promise<boolean[]> => [
      await isSameImage(one, other),
      await isSameImage(other, one),
    ];
    expect(await same(second, third)).toEqual([true, true]);
    expect(await same(first, second)).toEqual([false, false]);
    expect(await same(third, fewer)).toEqual([false, false]);
    expect(await same(third, dump("p-5", { ...core, ...pages("a", "x", "c") }))).toEqual([true, true]);
    expect(await same(third, dump("p-6", { ...core, ...pages("a", "x", "d") }))).toEqual([false, false]);
    const written: Record<string, Buffer> = {};
    for (const { name, size, read } of await imageFiles(third)) {
      const pieces: Uint8Array[] = [];
      for await (const piece of read(1000)) pieces.push(piece);
      written[name] = Buffer.concat(pieces);
      expect(written[name]?.length).toBe(size);
    }
    expect(written).toEqual({ ...core, ...pages("a", "x", "c") });
  });

  test("two dumps are the same where all but what tells of the dump is equal", async () => {
    const { folder } = open();
    const dump = (name: string, files: Record<string, string>): string => {
      mkdirSync(join(folder, name));
      for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, name, file), content);
      return join(folder, name);
    };
    const one = { "core-2.img": "12345678", "files.img": "x", "stats-dump": "1", "dump.log": "a" };
    const base = dump("a", one);
    expect(
      await isSameImage(dump("b", { ...one, "stats-dump": "2", "inventory.img": "3", "dump.log": "bb" }), base),
    ).toBe(true);
    expect(await isSameImage(dump("c", { ...one, "core-2.img": "12345679" }), base)).toBe(false);
    expect(await isSameImage(dump("d", { ...one, "files.img": "y" }), base)).toBe(false);
    expect(await isSameImage(dump("e", { ...one, "fs-2.img": "" }), base)).toBe(false);
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
