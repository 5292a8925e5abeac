// Reads the messages of one of CRIU's image files.
import { readFile } from "node:fs/promises";
import { decode, type Message, type Table } from "./protobuf.ts";

/** Two magic numbers, then messages, each behind its length. Null where the file is not there. */
export async function readImage<T extends Table>(table: T, path: string): Promise<Message<T>[] | null> {
  const bytes = await readFile(path).catch(() => null);
  if (bytes === null) return null;
  const messages: Message<T>[] = [];
  let at = 8;
  while (at + 4 <= bytes.length) {
    const end = at + 4 + bytes.readUInt32LE(at);
    messages.push(decode(table, bytes.subarray(at + 4, end)));
    at = end;
  }
  return messages;
}
