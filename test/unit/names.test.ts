// Names are bytes: F-8, F-14; entries survive their encoding.
import { expect, test } from "vitest";
import { decodeEntry, encodeEntry, entryType } from "../../src/environment/directory/entry.ts";
import { callerPath, display, fromBytes, fromDisplay, toBytes } from "../../src/environment/directory/names.ts";

const raw = (...parts: (string | number[])[]): string =>
  fromBytes(Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part)))));

test("F-14: plain names are shown as they are, others quoted, and both forms lead back", () => {
  const shown: [string, string][] = [
    [raw("src/a.ts"), "src/a.ts"],
    [raw("日本 語.txt"), "日本 語.txt"],
    [raw(" lead"), " lead"],
    [raw("a\nb\tc"), '"a\\nb\\tc"'],
    [raw('say "hi"'), '"say \\"hi\\""'],
    [raw("back\\slash"), '"back\\\\slash"'],
    [raw("bad", [0xff, 0xfe]), '"bad\\xff\\xfe"'],
    [raw("\x1b[31mred"), '"\\x1b[31mred"'],
    [raw("é\n"), '"é\\n"'],
    [raw("é", [0xff]), '"\\xc3\\xa9\\xff"'],
    [raw("\u009b31m"), '"\\xc2\\x9b31m"'],
    [raw("txt.\u202eexe"), '"txt.\\xe2\\x80\\xaeexe"'],
    [raw('"quoted"'), '"\\"quoted\\""'],
    [raw("\\xff"), '"\\\\xff"'],
  ];
  for (const [path, form] of shown) {
    expect(display(path)).toBe(form);
    expect(fromDisplay(form)).toBe(path);
  }
});

test("F-14: every sequence of bytes leads back", () => {
  let seed = 7;
  const next = (): number => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff;
    return seed >> 8;
  };
  for (let round = 0; round < 2_000; round++) {
    const bytes = Buffer.from(Array.from({ length: 1 + (next() % 12) }, () => (next() % 255) + 1));
    expect(toBytes(fromDisplay(display(fromBytes(bytes)))).equals(bytes)).toBe(true);
  }
});

test("F-8: an entry keeps any name, times before 1970 and attributes", () => {
  const entry = {
    name: raw([0xff, 0x0a, 0x20]),
    type: entryType.file,
    flags: 3,
    mode: 0o4755,
    uid: 4_000_000_000,
    gid: 1,
    mtimeNs: -1_234_567_890_123_456_789n,
    size: 2 ** 40,
    rdevMajor: 1,
    rdevMinor: 3,
    tail: raw("some/other"),
    xattrs: [
      ["user.a", Buffer.from([0, 1])],
      ["user.b", Buffer.alloc(0)],
    ] as const,
    content: Buffer.alloc(32, 9),
  };
  expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
  expect(decodeEntry(encodeEntry({ ...entry, content: null }))).toEqual({ ...entry, content: null });
});

test("a caller's path stays inside", () => {
  expect(callerPath("./a//b/")).toBe("a/b");
  for (const path of ["/etc/passwd", "../x", "a/../../x"]) {
    expect(() => callerPath(path)).toThrow(expect.objectContaining({ code: "PATH_OUTSIDE" }));
  }
});
