import * as fs from "node:fs";
import { basename, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { useFileSystem } from "../helpers/file-system.ts";
import { Mapper } from "../helpers/mapper.ts";
import { makePlace, type Place, useRewind } from "../helpers/workspace.ts";

const size = 3 << 18;
const mappers: Mapper[] = [];
const newMapper = (): Mapper => {
  const mapper = new Mapper();
  mappers.push(mapper);
  return mapper;
};
afterEach(async () => {
  for (const mapper of mappers.splice(0)) await mapper.end();
});

const marks = (file: string): string[] => {
  const bytes = fs.readFileSync(file);
  expect(bytes.length).toBe(size);
  return [0, 4096, size - 8].map((at) => bytes.toString("latin1", at, at + 3));
};
const mark = async (mapper: Mapper, text: string): Promise<void> => {
  for (const at of [0, 4096, size - 8]) await mapper.store(at, text);
};
/** A clock tick later: what the last scan knew is settled. */
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

describe.each(["the disk", "tmpfs"] as const)("on %s", (where) => {
  const on = useFileSystem(where);
  const skip = lacking("native", "python") || on.lacks;

  function mappedPlace(): Place & { readonly file: string } {
    const place = makePlace(on.parent);
    const file = join(place.workspace, "mapped");
    fs.writeFileSync(file, Buffer.alloc(size, "."));
    fs.writeFileSync(join(place.workspace, "beside"), "1");
    return { ...place, file };
  }

  test.skipIf(skip)("each store is in the checkpoint that follows it, and comes back", async () => {
    const place = mappedPlace();
    const mapper = newMapper();
    const thread = (await useRewind(place)).thread("t");
    await mapper.map(place.file, size);
    const ids: string[] = [];
    for (const text of ["one", "two", "six", "ten"]) {
      await mark(mapper, text);
      await settle();
      const made = await thread.checkpoint();
      expect(made.problems).toEqual([]);
      ids.push(made.id);
    }
    await mapper.unmap();
    for (const [i, text] of ["one", "two", "six", "ten"].entries()) {
      await thread.rewind({ to: ids[i] as string });
      expect(marks(place.file), ids[i]).toEqual([text, text, text]);
    }
  });

  test.skipIf(skip)("a mapping that was closed, and a process that is gone, before the checkpoint", async () => {
    const place = mappedPlace();
    const thread = (await useRewind(place)).thread("t");
    for (const [text, end] of [
      ["cut", "unmap"],
      ["end", "end"],
    ] as const) {
      const mapper = newMapper();
      await mapper.map(place.file, size);
      await mark(mapper, "was");
      await settle();
      await thread.checkpoint();
      await mark(mapper, text);
      await mapper[end]();
      const made = await thread.checkpoint();
      fs.rmSync(place.file);
      await thread.rewind({ to: made.id });
      expect(marks(place.file)).toEqual([text, text, text]);
    }
  });

  test.skipIf(skip)(
    "a file that another process maps at the rewind goes back; later stores do not reach it",
    async () => {
      const place = mappedPlace();
      const mapper = newMapper();
      const thread = (await useRewind(place)).thread("t");
      await mapper.map(place.file, size);
      await mark(mapper, "one");
      await thread.checkpoint();
      await mark(mapper, "two");
      const back = await thread.rewind({ to: "c0" });
      expect(back.notRestored).toMatchObject([
        { path: basename(place.file), reason: expect.stringContaining("still writes to the file that was there") },
      ]);
      expect(marks(place.file)).toEqual(["one", "one", "one"]);
      await mark(mapper, "six");
      expect(marks(place.file)).toEqual(["one", "one", "one"]);
    },
  );

  test.skipIf(skip)("a file that is mapped under another of its names", async () => {
    const place = mappedPlace();
    fs.mkdirSync(join(place.workspace, "d"));
    fs.linkSync(place.file, join(place.workspace, "d/name"));
    const mapper = newMapper();
    const thread = (await useRewind(place)).thread("t");
    await mapper.map(join(place.workspace, "d/name"), size);
    await mark(mapper, "one");
    await settle();
    await thread.checkpoint();
    await mark(mapper, "two");
    await thread.checkpoint();
    await mapper.end();
    for (const [id, text] of [
      ["c0", "one"],
      ["c1", "two"],
    ] as const) {
      await thread.rewind({ to: id });
      expect(marks(place.file)).toEqual([text, text, text]);
    }
  });

  test.skipIf(skip)("a stat cache alone would miss the second store: neither time moves", async () => {
    const place = mappedPlace();
    const mapper = newMapper();
    await mapper.map(place.file, size);
    await mark(mapper, "one");
    await settle();
    const times = (): string => {
      const { mtimeNs, ctimeNs, ino, size: length } = fs.lstatSync(place.file, { bigint: true });
      return `${mtimeNs} ${ctimeNs} ${ino} ${length}`;
    };
    const before = times();
    await mark(mapper, "two");
    expect(marks(place.file), "other programs see it").toEqual(["two", "two", "two"]);
    // On a disk the times move whenever the kernel writes back, at the latest after some seconds.
    expect(times()).toBe(before);
  });
});
