// What lies in the way of processes that share an engine, or speaks to them, and is none of them: nobody hangs, and it is told.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { protocolVersion } from "../../src/coordinator/engine/protocol.ts";
import { tryLock } from "../../src/store/lock.ts";
import { listenAt } from "../../src/store/socket.ts";
import { lacking } from "../capabilities.ts";
import { EngineProcess } from "../helpers/engine-process.ts";
import { makePlace } from "../helpers/workspace.ts";

const newFolder = (): string => {
  const folder = join(makePlace().base, "locks");
  fs.mkdirSync(folder);
  return folder;
};
const silenceMs = 800;
const socketOf = (folder: string): string => join(folder, "engine.sock");

async function works(one: EngineProcess, name: string): Promise<void> {
  one.run(name);
  await one.until({ granted: name });
  await one.end(name);
}

test("a socket's file that was removed is made again", async () => {
  const folder = newFolder();
  const holder = new EngineProcess({ folder, perDevice: 1, silenceMs });
  await holder.until({ role: "grants" });
  await expect.poll(() => fs.existsSync(socketOf(folder)), { interval: 5 }).toBe(true);
  fs.rmSync(socketOf(folder));
  const other = new EngineProcess({ folder, perDevice: 1, silenceMs });
  await other.until({ role: "asks" });
  await works(other, "b0");
});

test.each([
  ["a file", (path: string) => fs.writeFileSync(path, "not a socket")],
  ["a link to nowhere", (path: string) => fs.symlinkSync("/nowhere", path)],
  ["a link to a file", (path: string) => fs.symlinkSync("/etc/passwd", path)],
  ["a pipe", (path: string) => execFileSync("mkfifo", [path])],
])("%s in the socket's place is no obstacle, before and behind its beginning", async (_, put) => {
  const folder = newFolder();
  put(socketOf(folder));
  const holder = new EngineProcess({ folder, perDevice: 1, silenceMs });
  await holder.until({ role: "grants" });
  await expect.poll(() => fs.lstatSync(socketOf(folder), { throwIfNoEntry: false })?.isSocket()).toBe(true);
  fs.rmSync(socketOf(folder));
  put(socketOf(folder));
  const other = new EngineProcess({ folder, perDevice: 1, silenceMs });
  await other.until({ role: "asks" });
  await works(other, "b0");
  expect(fs.readFileSync("/etc/passwd", "utf8")).toContain("root");
});

test("a folder in the socket's place: each goes on alone and says so, until it is gone", async () => {
  const folder = newFolder();
  fs.mkdirSync(socketOf(folder));
  const holder = new EngineProcess({ folder, perDevice: 1, silenceMs });
  await holder.until({ role: "grants", reason: "unreachable" });
  await works(holder, "a0");
  const other = new EngineProcess({ folder, perDevice: 1, silenceMs });
  other.run("b0");
  await other.until({ role: "alone", reason: "nobody" });
  await other.until({ granted: "b0" });
  await other.end("b0");
  fs.rmdirSync(socketOf(folder));
  await other.until({ role: "asks" });
  await works(other, "b1");
});

test.each([
  ["a folder", (path: string) => fs.mkdirSync(path)],
  ["a file of something else", (path: string) => fs.writeFileSync(path, "no database of locks".repeat(400))],
])("%s in the lock's place: each goes on alone and says so, until it is gone", async (_, put) => {
  const folder = newFolder();
  const path = join(folder, "engine.lock");
  put(path);
  const one = new EngineProcess({ folder, perDevice: 1, silenceMs });
  one.run("a0");
  await one.until({ role: "alone", reason: "nobody" });
  await one.until({ granted: "a0" });
  fs.rmSync(path, { recursive: true });
  await one.until({ role: "grants" });
  one.run("a1");
  await one.end("a0");
  await one.until({ granted: "a1" });
});

test.skipIf(lacking("tmpfs"))("a disk without room: it goes on alone and says so, until there is room", async () => {
  const folder = newFolder();
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m,nr_inodes=3", "none", folder]);
  try {
    const fillers = ["1", "2"].map((name) => join(folder, name));
    for (const filler of fillers) fs.writeFileSync(filler, "");
    expect(() => fs.writeFileSync(join(folder, "3"), "")).toThrow(/ENOSPC/);
    const one = new EngineProcess({ folder, perDevice: 1, silenceMs });
    await one.until({ role: "alone", reason: "nobody" });
    await works(one, "a0");
    // Room for the lock, not for the socket.
    fs.rmSync(fillers[0] as string);
    await one.until({ role: "grants", reason: "unreachable" });
    await works(one, "a1");
    fs.rmSync(fillers[1] as string);
    const other = new EngineProcess({ folder, perDevice: 1, silenceMs });
    await other.until({ role: "asks" });
    await works(other, "b0");
    await other.close();
    await one.close();
  } finally {
    execFileSync("umount", ["-l", folder]);
  }
});

test.each([
  ["nonsense", "senseless", (socket: Socket) => socket.write("what?\n")],
  ["a grant of no number", "senseless", (socket: Socket) => socket.write('{"say":"granted","id":"0"}\n')],
  [
    "another version",
    "version",
    (socket: Socket) => socket.end(`{"say":"refused","version":${protocolVersion + 1}}\n`),
  ],
  ["nothing", "silent", () => {}],
])("a process that grants and says %s is not waited for, and is asked again later", async (_, reason, answer) => {
  const folder = newFolder();
  const lock = tryLock(folder, "engine");
  const listener = await listenAt(folder, "engine", answer);
  const one = new EngineProcess({ folder, perDevice: 1, silenceMs });
  one.run("a0");
  await one.until({ role: "alone", reason });
  await one.until({ granted: "a0" });
  await listener.close();
  lock?.release();
  await one.until({ role: "grants" });
});

const hello = `{"say":"hello","version":${protocolVersion}}\n`;
const ask = (id: number): string =>
  `{"say":"ask","id":${id},"kind":"capture","environment":"e","device":"d","promoted":true,"running":false}\n`;

test("processes that say what nobody may say are cut off, and the others are served", async () => {
  const folder = newFolder();
  const holder = new EngineProcess({ folder, perDevice: 1, silenceMs });
  await holder.until({ role: "grants" });
  await expect.poll(() => fs.existsSync(socketOf(folder)), { interval: 5 }).toBe(true);
  for (const said of [
    "what?\n",
    ask(1),
    `{"say":"hello","version":${protocolVersion + 1}}\n`,
    "x".repeat(1 << 20),
    hello + ask(1) + ask(1),
    hello + ask(1).replace("capture", "everything"),
    hello + Array.from({ length: 10_100 }, (_, n) => ask(n)).join(""),
    Buffer.from([0xff, 0xfe, 0x00, 0x0a]),
  ]) {
    const socket = connect(socketOf(folder));
    socket.on("error", () => {});
    socket.resume();
    const ended = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    socket.write(said);
    await ended;
  }
  const other = new EngineProcess({ folder, perDevice: 1, silenceMs });
  await other.until({ role: "asks" });
  await works(other, "b0");
  await works(holder, "a0");
});
