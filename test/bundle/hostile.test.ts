// Bundles that are damaged, cut or not well meant are refused before anything of them is taken: the store and the place are as they were.
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { importBundle } from "agentrewind";
import { describe, expect, test } from "vitest";
import { checkBundle } from "../../src/bundle/check.ts";
import { recordKind } from "../../src/bundle/format.ts";
import { BundleReader } from "../../src/bundle/reader.ts";
import type { Header, Row } from "../../src/bundle/schema.ts";
import { BundleWriter } from "../../src/bundle/writer.ts";
import { type Entry, encodeEntry, entryType } from "../../src/environment/directory/entry.ts";
import { kindBit } from "../../src/store/reach.ts";
import { codeOf, endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { context, everything, makeTarget, sh } from "./scene.ts";

/** A small thread: two checkpoints of three files. */
async function smallBundle(): Promise<string> {
  const place = makePlace();
  const rewind = await useRewind(place);
  sh(place.workspace, "mkdir d; echo 1 > a; ln a d/hard; echo 2 > d/f");
  await rewind.thread("t").checkpoint({ context: { messages: ["m0"], channels: { todos: ["one"] } } });
  sh(place.workspace, "echo 2 > a; head -c 300000 /dev/urandom > big");
  await rewind.thread("t").checkpoint({ context: context("m0", "m1") });
  await rewind.thread("t").rewind({ to: "c0", lesson: "no" });
  const file = join(place.base, "small");
  await rewind.export({ to: file });
  await endSession(rewind);
  return file;
}

async function check(file: string): Promise<string | undefined> {
  const reader = new BundleReader(file);
  try {
    await checkBundle(reader);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  } finally {
    reader.close();
  }
}

/** Nothing is made, and a store that is there is not touched. */
async function expectRefused(file: string, code = "BUNDLE_DAMAGED"): Promise<void> {
  const target = makeTarget();
  const place = { base: "", workspace: target.into("mine"), store: target.store };
  fs.mkdirSync(place.workspace);
  fs.writeFileSync(join(place.workspace, "f"), "1");
  const rewind = await useRewind(place);
  await rewind.thread("t").checkpoint();
  await endSession(rewind);
  const before = everything(target.base);
  expect(await codeOf(importBundle(file, { store: target.store, into: target.into("deep/a") }))).toBe(code);
  expect(everything(target.base)).toBe(before);
}

describe("F-70, F-71: a bundle that is not whole", () => {
  test("cut anywhere, or with a byte changed anywhere, it is refused", async () => {
    const file = await smallBundle();
    const bytes = fs.readFileSync(file);
    expect(await check(file)).toBeUndefined();
    const other = `${file}.other`;
    const step = process.env.AGENTREWIND_LONG === "1" ? 1 : 97;
    for (let at = 0; at < bytes.length; at += at < 4096 || at > bytes.length - 4096 ? Math.min(step, 7) : 10 * step) {
      fs.writeFileSync(other, bytes.subarray(0, at));
      expect([at, await check(other)]).toEqual([at, "BUNDLE_DAMAGED"]);
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] as number) ^ (1 << (at % 8));
      fs.writeFileSync(other, changed);
      expect([at, await check(other)]).toEqual([at, "BUNDLE_DAMAGED"]);
    }
    fs.writeFileSync(other, Buffer.concat([bytes, Buffer.from([0])]));
    await expectRefused(other);
    fs.writeFileSync(other, bytes.subarray(0, bytes.length - 1));
    await expectRefused(other);
    const middle = Buffer.from(bytes);
    middle[bytes.length >> 1] = (middle[bytes.length >> 1] as number) ^ 1;
    fs.writeFileSync(other, middle);
    await expectRefused(other);
  });

  test("a length that nothing can have takes no memory, and a little that unpacks to much is cut off", async () => {
    const file = await smallBundle();
    const bytes = fs.readFileSync(file);
    const at = 8;
    for (const [offset, value] of [
      [4, 0xffffffff],
      [8, 0xffffffff],
      [4, 0x7fffffff],
    ] as const) {
      const changed = Buffer.from(bytes);
      changed.writeUInt32LE(value, at + offset);
      fs.writeFileSync(`${file}.other`, changed);
      await expectRefused(`${file}.other`);
    }
    const bomb = Buffer.alloc(64 << 20);
    const small = deflateRawSync(bomb);
    const head = Buffer.alloc(44);
    head.writeUInt8(kindBit.content, 0);
    head.writeUInt8(1, 1);
    head.writeUInt32LE(small.length, 4);
    head.writeUInt32LE(1 << 20, 8);
    createHash("sha256").update(bomb).digest().copy(head, 12);
    fs.writeFileSync(`${file}.other`, Buffer.concat([bytes.subarray(0, 8), head, small]));
    await expectRefused(`${file}.other`);
  });

  test("made by a newer version it is refused as such", async () => {
    for (const newer of [{ format: 2 }, { store: 1000 }]) {
      const file = await rewritten(await smallBundle(), { header: (header) => ({ ...header, ...newer }) });
      await expectRefused(file, "STORE_TOO_NEW");
    }
  });
});

interface Changes {
  readonly header?: (header: Header) => unknown;
  readonly row?: (row: Row) => unknown;
  /** What an object becomes; its name follows. */
  readonly object?: (kind: number, payload: Buffer) => Buffer;
  /** More objects, before the others. */
  readonly more?: readonly (readonly [kind: number, payload: Buffer])[];
  readonly isLeftOut?: (kind: number, payload: Buffer) => boolean;
}

/** The same bundle with other content: every digest is right. */
async function rewritten(file: string, changes: Changes): Promise<string> {
  const to = `${file}.${Math.random().toString(36).slice(2)}`;
  const reader = new BundleReader(file);
  const writer = new BundleWriter(to);
  for (const { kind, payload } of reader.records()) {
    if (changes.isLeftOut?.(kind, payload)) continue;
    if (kind === recordKind.header) {
      const header = JSON.parse(payload.toString()) as Header;
      writer.addJson(kind, changes.header?.(header) ?? header);
      for (const [more, bytes] of changes.more ?? []) writer.add(more, bytes);
    } else if (kind === recordKind.row) {
      const row = JSON.parse(payload.toString()) as Row;
      writer.addJson(kind, changes.row?.(row) ?? row);
    } else writer.add(kind, changes.object?.(kind, payload) ?? payload);
  }
  await writer.finish();
  reader.close();
  return to;
}

const hashOf = (bytes: Buffer): Buffer => createHash("sha256").update(bytes).digest();
const entry = (name: string, more: Partial<Entry>): Entry => ({
  ...{ name, type: entryType.file, flags: 0, mode: 0o644, uid: 0, gid: 0, mtimeNs: 0n, size: 0 },
  ...{ rdevMajor: 0, rdevMinor: 0, tail: "", xattrs: [], content: null },
  ...more,
});
const text = Buffer.from("evil\n");
const file = (name: string): Entry => entry(name, { size: text.length, content: hashOf(text) });

function leaf(items: readonly Buffer[]): Buffer {
  const parts = items.flatMap((item) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(item.length);
    return [length, item];
  });
  return Buffer.concat([Buffer.from([1]), ...parts]);
}
const folderOf = (...entries: Entry[]): Buffer => leaf(entries.map(encodeEntry));
const rootOf = (list: Buffer, more: Partial<Entry> = {}): Buffer =>
  Buffer.concat([
    Buffer.from([3, 31]),
    encodeEntry(entry("", { type: entryType.directory, mode: 0o755, content: hashOf(list), ...more })),
  ]);

/** All checkpoints have these files. */
async function withFiles(list: Buffer, more: readonly (readonly [number, Buffer])[] = [], root = rootOf(list)) {
  const files = hashOf(root).toString("hex");
  return rewritten(await smallBundle(), {
    more: [[kindBit.content, text], ...more, [kindBit.tree, list], [kindBit.snapshot, root]],
    row: (row) => (row.table === "checkpoint" ? { ...row, files, toolsFiles: null } : row),
  });
}

describe("F-71: a bundle that means no good", () => {
  test("made in the same way, one that means well is taken", async () => {
    const inner = folderOf(file("f"));
    const list = folderOf(
      file("a"),
      entry("d", { type: entryType.directory, mode: 0o755, content: hashOf(inner) }),
      entry("z", { type: entryType.hardLink, tail: "a" }),
    );
    for (const one of [await rewritten(await smallBundle(), {}), await withFiles(list, [[kindBit.tree, inner]])]) {
      const target = makeTarget();
      const { workspace } = await importBundle(one, { store: target.store, into: target.into("a") });
      expect(fs.readdirSync(workspace).slice(0, 2)).toEqual(["a", "d"]);
    }
  });

  test("a hard link to a name that is not there leaves nothing", async () => {
    const target = makeTarget();
    const list = folderOf(file("a"), entry("z", { type: entryType.hardLink, tail: "b" }));
    const into = target.into("deep/a");
    expect(await codeOf(importBundle(await withFiles(list), { store: target.store, into }))).toBe("BUNDLE_DAMAGED");
    expect(fs.existsSync(target.into("deep"))).toBe(false);
    expect(await importBundle(await smallBundle(), { store: target.store, into })).toMatchObject({ checkpoint: "c0" });
  });

  test("names that lead out of their folder, are there twice, or are none", async () => {
    const link = entry("a", { type: entryType.symlink, tail: "/etc" });
    const inner = folderOf(file("passwd"));
    const folder = entry("a", { type: entryType.directory, mode: 0o755, content: hashOf(inner) });
    for (const list of [
      folderOf(file("..")),
      folderOf(file(".")),
      folderOf(file("")),
      folderOf(file("../../evil")),
      folderOf(file("/etc/evil")),
      folderOf(file("a\0b")),
      folderOf(file("x".repeat(256))),
      folderOf(file("b"), file("a")),
      folderOf(link, folder),
      folderOf(folder, link),
      folderOf(file("a"), file("a")),
    ])
      await expectRefused(await withFiles(list, [[kindBit.tree, inner]]));
  });

  test("hard links that lead out, or to nothing that is there", async () => {
    const link = (tail: string): Entry => entry("z", { type: entryType.hardLink, tail });
    for (const tail of ["../../../etc/passwd", "/etc/passwd", "", "a/../../b", "a//b"])
      await expectRefused(await withFiles(folderOf(file("a"), link(tail))));
  });

  test("entries of no kind, of another length, with other content than they say", async () => {
    const cut = encodeEntry(file("a")).subarray(0, 60);
    const long = Buffer.from(encodeEntry(file("a")));
    long.writeUInt32LE(0xfffffff0, 38);
    for (const list of [
      folderOf({ ...file("a"), type: 77 as never }),
      folderOf({ ...file("a"), size: 1 << 30 }),
      folderOf({ ...file("a"), content: null }),
      folderOf({ ...file("a"), mode: 0o100644 }),
      folderOf({ ...file("a"), flags: 1 }),
      folderOf({ ...file("a"), content: hashOf(Buffer.from("missing")) }),
      folderOf(entry("a", { type: entryType.symlink, tail: "x", content: hashOf(text) })),
      leaf([cut]),
      leaf([long]),
      leaf([Buffer.alloc(0)]),
      Buffer.from([1, 255, 255, 255, 255]),
      Buffer.from([9]),
      Buffer.alloc(0),
      Buffer.concat([Buffer.from([2]), hashOf(text), Buffer.alloc(8)]),
    ])
      await expectRefused(await withFiles(list));
    const list = folderOf(file("a"));
    await expectRefused(await withFiles(list, [], rootOf(list, { name: "x" })));
    await expectRefused(await withFiles(list, [], rootOf(list, { type: entryType.symlink, content: null })));
  });

  test("folders that hold themselves again and again, more than any disk takes", async () => {
    let list = folderOf(file("f"));
    const all: [number, Buffer][] = [[kindBit.tree, list]];
    for (let depth = 0; depth < 30; depth++) {
      const content = hashOf(list);
      const folder = (name: string): Entry => entry(name, { type: entryType.directory, mode: 0o755, content });
      list = folderOf(folder("a"), folder("b"), folder("c"));
      all.push([kindBit.tree, list]);
    }
    await expectRefused(await withFiles(list, all));
  });

  test("objects that are named and missing, or come too late", async () => {
    const small = await smallBundle();
    for (const left of [kindBit.content, kindBit.tree, kindBit.snapshot, kindBit.context, kindBit.messages]) {
      let isFirst = true;
      const one = (kind: number): boolean => {
        const found = kind === left && isFirst;
        if (found) isFirst = false;
        return found;
      };
      await expectRefused(await rewritten(small, { isLeftOut: one }));
    }
    await expectRefused(await rewritten(small, { isLeftOut: (kind) => kind === recordKind.row }));
  });

  test("rows that name what is not there, or have another form", async () => {
    const small = await smallBundle();
    const changed = (change: (row: Extract<Row, { table: "checkpoint" }>) => object): Changes => ({
      row: (row) => (row.table === "checkpoint" ? { ...row, ...change(row) } : row),
    });
    for (const changes of [
      changed(() => ({ parent: 2 })),
      changed(() => ({ parent: 0 })),
      changed(() => ({ seq: 0 })),
      changed(() => ({ seq: 1e9 })),
      changed(() => ({ seq: -1 })),
      changed(() => ({ thread: 1 })),
      changed(() => ({ context: "0".repeat(64) })),
      changed(() => ({ files: "../../x" })),
      changed(() => ({ files: "0".repeat(64) })),
      changed(() => ({ files: null })),
      changed(() => ({ processes: "p-1" })),
      changed(() => ({ lessons: [7] })),
      changed(() => ({ effects: [[0, 9]] })),
      changed(() => ({ problems: "no" })),
      changed(() => ({ state: "making" })),
      changed(() => ({ more: 1 })),
      { header: (header) => ({ ...header, threads: [] }) },
      { header: (header) => ({ ...header, threads: [...header.threads, ...header.threads] }) },
      { header: (header) => ({ ...header, threads: [{ ...header.threads[0], head: 9 }] }) },
      { header: (header) => ({ ...header, source: { ...header.source, workspace: "relative/../.." } }) },
      { header: (header) => ({ ...header, environment: { ...header.environment, kind: "sandbox" } }) },
      { header: () => "no" },
      { row: (row) => ({ ...row, table: "workspace" }) },
    ] satisfies Changes[])
      await expectRefused(await rewritten(small, changes));
  });

  test("a place that its maker would like: it has no say in that", async () => {
    const small = await smallBundle();
    const target = makeTarget();
    const here = process.cwd();
    process.chdir(target.base);
    try {
      const elsewhere = target.into("elsewhere/home");
      for (const [workspace, code] of [
        [join(elsewhere, ".ssh"), "BAD_ARGUMENT"],
        ["/", "BAD_ARGUMENT"],
        [join(elsewhere, "plain"), undefined],
      ] as const) {
        const bundle = await rewritten(small, { header: (h) => ({ ...h, source: { ...h.source, workspace } }) });
        const work = importBundle(bundle, { store: target.store });
        if (code !== undefined) expect(await codeOf(work)).toBe(code);
        else expect((await work).workspace).toBe(target.into("plain"));
        expect(fs.existsSync(target.into("elsewhere"))).toBe(false);
        expect(fs.existsSync(target.into(".ssh"))).toBe(false);
      }
    } finally {
      process.chdir(here);
    }
  });

  test("a file that becomes another one between two looks leaves nothing either", async () => {
    const small = await smallBundle();
    const target = makeTarget();
    const other = await rewritten(small, { header: (header) => ({ ...header, createdAt: "later" }) });
    const reader = new BundleReader(small);
    await checkBundle(reader);
    // The same file, as the one that has it open sees it.
    fs.writeFileSync(small, fs.readFileSync(other));
    expect(() => [...reader.records()]).toThrow(expect.objectContaining({ code: "BUNDLE_DAMAGED" }));
    reader.close();
    expect(everything(target.store)).toBe("");
  });
});
