// What Node cannot see or set of an inode (test/fixtures/inode.py): holes, attributes, exact times, flags, trees deeper than PATH_MAX.
import type { DigestOptions } from "./digest.ts";
import { python } from "./python.ts";

/** As digestTree, and besides where a file's data lies, extended attributes, ACLs and capabilities. */
export const digestInodes = (root: string, { times = "ns" }: DigestOptions = {}): string[] =>
  python("inode.py", "digest", root, times).trimEnd().split("\n");

export const setAttribute = (path: string, name: string, value: Uint8Array | string): void =>
  void python("inode.py", "setxattr", path, name, Buffer.from(value).toString("hex"));

/** Sets the times of modification, of links themselves too. */
export const setTimeNs = (ns: bigint, ...paths: string[]): void => void python("inode.py", "utime", `${ns}`, ...paths);

/** i: immutable, a: append only. */
export const setFlag = (change: "+i" | "-i" | "+a" | "-a", ...paths: string[]): void =>
  void python("inode.py", "flags", change, ...paths);

interface AclEntry {
  readonly tag: "owner" | "user" | "group" | "namedGroup" | "mask" | "other";
  readonly permissions: number;
  readonly id?: number;
}
const aclTags = { owner: 1, user: 2, group: 4, namedGroup: 8, mask: 16, other: 32 } as const;

/** The value of system.posix_acl_access or system.posix_acl_default. */
export function acl(...entries: AclEntry[]): Buffer {
  const bytes = Buffer.alloc(4 + 8 * entries.length);
  bytes.writeUInt32LE(2, 0);
  for (const [i, { tag, permissions, id = 0xffffffff }] of entries.entries()) {
    bytes.writeUInt16LE(aclTags[tag], 4 + 8 * i);
    bytes.writeUInt16LE(permissions, 6 + 8 * i);
    bytes.writeUInt32LE(id, 8 + 8 * i);
  }
  return bytes;
}

/** The value of security.capability: cap_net_bind_service, effective and permitted. */
export function fileCapability(bit = 10): Buffer {
  const bytes = Buffer.alloc(20);
  bytes.writeUInt32LE(0x02000001, 0);
  bytes.writeUInt32LE(2 ** bit, 4);
  return bytes;
}
