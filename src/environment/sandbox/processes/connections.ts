// Which connections of a dumped tree lead out of it, and whose they are, as the images tell.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Problem } from "../../environment.ts";
import { named } from "../../processes/process-name.ts";
import { readImage } from "./images.ts";
import { descriptor, file, process, sharedParts } from "./messages.ts";
import type { Message } from "./protobuf.ts";

type Socket = NonNullable<Message<typeof file>["isk"]>;

const tcp = 6;
/** Neither closed nor listening. */
const connected = new Set([1, 2, 3, 4, 5, 6, 8, 9, 11]);

/** They are in the images, but nobody answers on them after a restore. */
export async function outwardTcp(images: string): Promise<Problem[]> {
  const sockets = new Map<number, Socket>();
  for (const { id = 0, isk } of (await readImage(file, join(images, "files.img"))) ?? []) {
    if (isk?.proto === tcp && connected.has(isk.state ?? 0)) sockets.set(id, isk);
  }
  const ends = new Set([...sockets.values()].map((socket) => `${ownEnd(socket)} ${otherEnd(socket)}`));
  const outward = [...sockets].filter(([, socket]) => !ends.has(`${otherEnd(socket)} ${ownEnd(socket)}`));
  if (outward.length === 0) return [];
  const wanted = new Set(outward.map(([id]) => id));
  const owners = await ownersOf(images, ({ id = 0 }) => wanted.has(id));
  return outward.map(([id, socket]) => ({
    path: owners.get(id) ?? "a process",
    reason: `its TCP connection to ${otherEnd(socket)} leaves the sandbox: after a rewind it is dead and must be made anew`,
  }));
}

/** Processes with a Unix socket that is connected to none of the tree. CRIU refuses them without saying whose they are: it has noted the descriptors, but not the sockets. */
export async function outwardUnixSockets(images: string): Promise<string[]> {
  const noted = new Set(((await readImage(file, join(images, "files.img"))) ?? []).map(({ id }) => id));
  const owners = await ownersOf(images, ({ id, type }) => type === unixSocket && !noted.has(id));
  return [...new Set(owners.values())];
}

const unixSocket = 5;

const ownEnd = ({ src_addr = [], src_port = 0 }: Socket): string => shown(src_addr, src_port);
const otherEnd = ({ dst_addr = [], dst_port = 0 }: Socket): string => shown(dst_addr, dst_port);

/** Words as they lie in memory. An IPv4 address in IPv6 is the same address. */
function shown(words: readonly number[], port: number): string {
  const bytes = Buffer.alloc(words.length * 4);
  for (const [i, word] of words.entries()) bytes.writeInt32LE(word | 0, i * 4);
  const mapped = bytes.length === 16 && bytes.subarray(0, 12).equals(Buffer.from("00000000000000000000ffff", "hex"));
  if (bytes.length === 4 || mapped) return `${bytes.subarray(-4).join(".")}:${port}`;
  const groups = Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16));
  return `[${groups.join(":")}]:${port}`;
}

/** For each open file that is wanted one process that has it, as "process 12 (curl)". */
async function ownersOf(
  images: string,
  isWanted: (one: Message<typeof descriptor>) => boolean,
): Promise<Map<number, string>> {
  const owners = new Map<number, string>();
  for (const name of await readdir(images)) {
    const pid = /^ids-(\d+)\.img$/.exec(name)?.[1];
    if (pid === undefined) continue;
    const ids = (await readImage(sharedParts, join(images, name)))?.[0];
    const open = (await readImage(descriptor, join(images, `fdinfo-${ids?.files_id}.img`))) ?? [];
    const mine = open.filter(isWanted).flatMap(({ id = 0 }) => (owners.has(id) ? [] : [id]));
    if (mine.length === 0) continue;
    const command = (await readImage(process, join(images, `core-${pid}.img`)))?.[0]?.tc?.comm ?? "";
    for (const id of mine) owners.set(id, named(pid, command));
  }
  return owners;
}
