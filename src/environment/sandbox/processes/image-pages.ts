// Where the pages of a dumped process lie: in its own image, or in one that it was made from and that did not change since (F-64).
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readImage } from "./images.ts";
import { pagemap } from "./messages.ts";

/** Of one mapping of a process, or of shared memory: neighbouring pages that lie behind each other in a file. */
export interface Pages {
  /** Address of the first one. */
  readonly start: number;
  /** Bytes. */
  readonly length: number;
  /** CRIU's marks of them (pagemap.proto). */
  readonly flags: number;
  readonly file: string;
  readonly offset: number;
}

export const pageSize = 4096;
/** The link in an image's folder to the one that holds what it does not. */
export const parentLink = "parent";
export const isPagemap = (name: string): boolean => /^pagemap-.*\.img$/.test(name);
export const isPagesFile = (name: string): boolean => /^pages-\d+\.img$/.test(name);
export const pagesFile = (number: number): string => `pages-${number}.img`;

const inParent = 1;
const present = 4;

/** By the address. @param name of the file that tells of one process or of one piece of shared memory */
export async function pagesOf(folder: string, name: string): Promise<Pages[]> {
  const [head, ...maps] = (await readImage(pagemap, join(folder, name))) ?? [];
  const file = join(folder, pagesFile(head?.vaddr_or_pages_id ?? 0));
  const found: Pages[] = [];
  let older: readonly Pages[] | undefined;
  let offset = 0;
  for (const map of maps) {
    const { vaddr_or_pages_id: start = 0, compat_nr_pages, nr_pages = compat_nr_pages ?? 0, flags = present } = map;
    const length = nr_pages * pageSize;
    if ((flags & inParent) !== 0 || map.in_parent === true) {
      older ??= await pagesOf(join(folder, parentLink), name);
      found.push(...within(older, start, start + length));
    } else if ((flags & present) !== 0) {
      found.push({ start, length, flags, file, offset });
      offset += length;
    }
  }
  return found;
}

function* within(pages: readonly Pages[], from: number, to: number): Generator<Pages> {
  for (const one of pages) {
    const start = Math.max(one.start, from);
    const end = Math.min(one.start + one.length, to);
    if (start < end) yield { ...one, start, length: end - start, offset: one.offset + start - one.start };
  }
}

/** Where two lists do not have the same pages: null. Else the stretches that do not lie in the same place. */
export function apart(one: readonly Pages[], other: readonly Pages[]): [Pages, Pages][] | null {
  const found: [Pages, Pages][] = [];
  const [left, right] = [[...one], [...other]];
  for (let [a, b] = [left.shift(), right.shift()]; a !== undefined || b !== undefined; ) {
    if (a === undefined || b === undefined || a.start !== b.start) return null;
    const length = Math.min(a.length, b.length);
    if (a.file !== b.file || a.offset !== b.offset)
      found.push([
        { ...a, length },
        { ...b, length },
      ]);
    a = rest(a, length) ?? left.shift();
    b = rest(b, length) ?? right.shift();
  }
  return found;
}

const rest = (pages: Pages, taken: number): Pages | undefined =>
  pages.length === taken
    ? undefined
    : { ...pages, start: pages.start + taken, length: pages.length - taken, offset: pages.offset + taken };

export const pagemapsOf = (folder: string): string[] => readdirSync(folder).filter(isPagemap);
