// Encodes and decodes protobuf messages from a table of their fields.
import { PbfReader, PbfWriter } from "pbf";

/** Number and kind of each field that is used. `ints` and `strings` are repeated ones. */
export interface Table {
  readonly [name: string]: readonly [number: number, kind: "int" | "bool" | "string" | "ints" | "strings" | Table];
}

type Value<Kind> = Kind extends "int"
  ? number
  : Kind extends "bool"
    ? boolean
    : Kind extends "string"
      ? string
      : Kind extends "ints"
        ? readonly number[]
        : Kind extends "strings"
          ? readonly string[]
          : Kind extends Table
            ? Message<Kind>
            : never;

/** Fields that a message does not have are left out. */
export type Message<T extends Table> = { readonly [Name in keyof T]?: Value<T[Name][1]> };

export function encode<T extends Table>(table: T, message: Message<T>): Uint8Array {
  const writer = new PbfWriter();
  write(table, message as Fields, writer);
  return writer.finish();
}

/** Fields that the table does not have are skipped. @throws Error where the bytes are no message */
export function decode<T extends Table>(table: T, bytes: Uint8Array): Message<T> {
  const reader = new PbfReader(bytes);
  const message = read(table, reader, bytes.length) as Message<T>;
  if (reader.pos !== bytes.length) throw new Error("a message ends in the middle");
  return message;
}

type Fields = Record<string, unknown>;

function write(table: Table, message: Fields, writer: PbfWriter): void {
  for (const [name, value] of Object.entries(message)) {
    const [number, kind] = table[name] as Table[string];
    if (value === undefined) continue;
    if (kind === "int") writer.writeVarintField(number, value as number);
    else if (kind === "bool") writer.writeBooleanField(number, value as boolean);
    else if (kind === "string") writer.writeStringField(number, value as string);
    else if (kind === "ints") for (const one of value as number[]) writer.writeVarintField(number, one);
    else if (kind === "strings") for (const one of value as string[]) writer.writeStringField(number, one);
    else
      writer.writeMessage(
        number,
        (inner: Fields, to?: PbfWriter) => write(kind, inner, to as PbfWriter),
        value as Fields,
      );
  }
}

function read(table: Table, reader: PbfReader, end: number): Fields {
  const names = new Map(Object.entries(table).map(([name, [number, kind]]) => [number, [name, kind] as const]));
  return reader.readFields<Fields>(
    (number, result) => {
      const field = names.get(number);
      if (field === undefined) return;
      const [name, kind] = field;
      if (kind === "int") result[name] = reader.readVarint(true);
      else if (kind === "bool") result[name] = reader.readBoolean();
      else if (kind === "string") result[name] = reader.readString();
      else if (kind === "ints") result[name] = reader.readPackedVarint((result[name] as number[] | undefined) ?? []);
      else if (kind === "strings")
        result[name] = [...((result[name] as string[] | undefined) ?? []), reader.readString()];
      else result[name] = read(kind, reader, reader.readVarint() + reader.pos);
    },
    {},
    end,
  );
}
