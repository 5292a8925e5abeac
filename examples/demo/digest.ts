// An independent look at a tree: one digest over every entry, and the texts of its files. Shares no code with the library.
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Tree {
  /** sha256 over path bytes, type, mode, mtime in nanoseconds, and content or link target of every entry. */
  readonly digest: string;
  /** The files outside .git, by path. */
  readonly texts: ReadonlyMap<string, string>;
}

const slash = Buffer.from("/");
const fileType = 0o170000n;

export function readTree(root: string): Tree {
  const hash = createHash("sha256");
  const texts = new Map<string, string>();
  const field = (value: Buffer | string): void => {
    const bytes = Buffer.from(value as string);
    hash.update(`${bytes.length}:`).update(bytes);
  };

  function visit(path: Buffer, name: Buffer): void {
    const stat = lstatSync(path, { bigint: true });
    field(name);
    field((stat.mode & fileType).toString(8));
    field((stat.mode & ~fileType).toString(8));
    field(stat.mtimeNs.toString());
    if (stat.isSymbolicLink()) field(readlinkSync(path, { encoding: "buffer" }));
    if (stat.isFile()) {
      const content = readFileSync(path);
      field(createHash("sha256").update(content).digest());
      if (!/^\.git\//.test(name.toString())) texts.set(name.toString(), content.toString());
    }
    if (!stat.isDirectory()) return;
    for (const entry of readdirSync(path, { encoding: "buffer" }).sort(Buffer.compare)) {
      visit(Buffer.concat([path, slash, entry]), name.length === 0 ? entry : Buffer.concat([name, slash, entry]));
    }
  }

  visit(Buffer.from(root), Buffer.alloc(0));
  return { digest: hash.digest("hex"), texts };
}
