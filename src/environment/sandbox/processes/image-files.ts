// The files of an image with all of its pages, also of those that lie in images which it was made from: as they go into a bundle.
import { createReadStream, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { PortableFile } from "../../environment.ts";
import { isPagemap, isPagesFile, type Pages, pageSize, pagesFile, pagesOf, parentLink } from "./image-pages.ts";
import { readImage } from "./images.ts";
import { pagemap } from "./messages.ts";
import { encode, type Message } from "./protobuf.ts";

/** By their names. */
export async function imageFiles(folder: string): Promise<PortableFile[]> {
  const found: PortableFile[] = [];
  for (const name of readdirSync(folder)) {
    if (name === parentLink || isPagesFile(name)) continue;
    if (isPagemap(name)) found.push(...(await pagesWithMap(folder, name)));
    else
      found.push(stretch(name, [{ file: join(folder, name), offset: 0, length: statSync(join(folder, name)).size }]));
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function pagesWithMap(folder: string, name: string): Promise<PortableFile[]> {
  const [head = {}] = (await readImage(pagemap, join(folder, name))) ?? [];
  const pages = await pagesOf(folder, name);
  const magic = readFileSync(join(folder, name)).subarray(0, 8);
  const map = Buffer.concat([magic, message(head), ...pages.map(entryOf)]);
  return [
    {
      name,
      size: map.length,
      async *read() {
        yield map;
      },
    },
    stretch(pagesFile(head.vaddr_or_pages_id ?? 0), pages),
  ];
}

function entryOf({ start, length, flags }: Pages): Buffer {
  const count = length / pageSize;
  return message({ vaddr_or_pages_id: start, compat_nr_pages: count, flags, nr_pages: count });
}

function message(content: Message<typeof pagemap>): Buffer {
  const bytes = encode(pagemap, content);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function stretch(name: string, parts: readonly Pick<Pages, "file" | "offset" | "length">[]): PortableFile {
  return {
    name,
    size: parts.reduce((sum, { length }) => sum + length, 0),
    async *read(pieceSize) {
      for (const { file, offset, length } of parts) {
        if (length === 0) continue;
        const range = { start: offset, end: offset + length - 1, highWaterMark: pieceSize };
        for await (const piece of createReadStream(file, range)) yield piece as Buffer;
      }
    },
  };
}
