// An independent look at a tree, one line for each entry: the oracle of the tests, which shares no code with the library.
import { createHash } from "node:crypto";
import { type BigIntStats, lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface DigestOptions {
  /** "us" where the library runs without its addon. */
  readonly times?: "ns" | "us";
}

const slash = Buffer.from("/");
const formatBits = 0o170000n;
const types: Record<string, string> = {
  "100000": "file",
  "40000": "directory",
  "120000": "symlink",
  "10000": "fifo",
  "20000": "character-device",
  "60000": "block-device",
  "140000": "socket",
};

/** Path bytes, type, mode, owner, time, size, content, link target, device number and the names that share an inode. */
export function digestTree(root: string, { times = "ns" }: DigestOptions = {}): string[] {
  const found: { path: Buffer; absolute: Buffer; stat: BigIntStats }[] = [];
  const firstNames = new Map<string, Buffer>();

  function visit(absolute: Buffer, path: Buffer): void {
    const stat = lstatSync(absolute, { bigint: true });
    found.push({ path, absolute, stat });
    if (!stat.isDirectory()) {
      const inode = `${stat.dev}/${stat.ino}`;
      if (!firstNames.has(inode)) firstNames.set(inode, path);
      return;
    }
    for (const name of readdirSync(absolute, { encoding: "buffer" }).sort(Buffer.compare)) {
      visit(Buffer.concat([absolute, slash, name]), path.length === 0 ? name : Buffer.concat([path, slash, name]));
    }
  }
  visit(Buffer.from(root), Buffer.alloc(0));

  const show = (bytes: Buffer): string => JSON.stringify(bytes.toString("latin1"));
  return found.map(({ path, absolute, stat }) => {
    const type = types[(stat.mode & formatBits).toString(8)] as string;
    // A socket is left alone by a restore: only that it is there counts.
    if (type === "socket") return `${show(path)} socket`;
    const time = times === "ns" ? stat.mtimeNs : stat.mtimeNs / 1000n;
    const fields = [show(path), type, (stat.mode & ~formatBits).toString(8), `${stat.uid}:${stat.gid}`, `${time}`];
    if (type === "symlink") fields.push(show(readlinkSync(absolute, { encoding: "buffer" })));
    if (type === "file") {
      fields.push(`${stat.size}`, createHash("sha256").update(readFileSync(absolute)).digest("hex"));
    }
    if (type.endsWith("device")) fields.push(`rdev ${stat.rdev}`);
    const first = firstNames.get(`${stat.dev}/${stat.ino}`);
    if (first !== undefined && !first.equals(path)) fields.push(`same inode as ${show(first)}`);
    return fields.join(" ");
  });
}
