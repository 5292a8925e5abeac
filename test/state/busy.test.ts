// Files that somebody uses: written while they are read, held open or run at a rewind.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { digestInodes } from "../helpers/inode.ts";
import { Mapper } from "../helpers/mapper.ts";
import { pythonArguments, pythonPath } from "../helpers/python.ts";
import { endSession, makePlace, useRewind } from "../helpers/workspace.ts";
import { onBothPaths, sh } from "./workload.ts";

const size = 2 << 20;
const children: ChildProcess[] = [];
const mappers: Mapper[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) await ended(child, "SIGKILL");
  for (const mapper of mappers.splice(0)) await mapper.end();
});

async function ended(child: ChildProcess, signal?: "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const end = once(child, "close");
  if (signal === undefined) child.stdin?.end();
  else child.kill(signal);
  await end;
}

const start = (file: string, args: string[]): ChildProcess => {
  const child = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  child.stdout?.on("data", () => {});
  return child;
};

/** One version; where it is rewritten from its beginning on, also one above the one before: nobody can tell a writer that pauses from one that is done. */
function wasThere(bytes: Buffer, way: "in-place" | "replace"): boolean {
  const [newer, older] = [bytes[0] as number, bytes.at(-1) as number];
  if (newer === older) return bytes.equals(Buffer.alloc(bytes.length, newer));
  const end = bytes.indexOf(older);
  const follows = older === newer - 1 || (newer === 1 && [250, 251].includes(older));
  return (
    way === "in-place" &&
    follows &&
    bytes.subarray(0, end).equals(Buffer.alloc(end, newer)) &&
    bytes.subarray(end).equals(Buffer.alloc(bytes.length - end, older))
  );
}

for (const way of ["in-place", "replace"] as const) {
  onBothPaths(
    `a file that another process rewrites (${way}) while it is read is never stored as what it was not, unnamed`,
    {},
    async (times) => {
      const place = makePlace();
      const { workspace } = place;
      const file = join(workspace, "versions");
      sh(workspace, "mkdir d; echo 1 > d/beside; touch -d 2001-02-03 d/beside d");
      fs.writeFileSync(file, Buffer.alloc(size, 251));
      const writer = start(pythonPath() as string, pythonArguments("versions.py", way, file, `${size}`));
      await once(writer.stdout as NodeJS.ReadableStream, "data");
      const thread = (await useRewind(place)).thread("t");
      const beside = digestInodes(join(workspace, "d"), { times });
      const made = [];
      for (let i = 0; i < 4; i++) made.push(await thread.checkpoint());
      await ended(writer);
      const last = fs.readFileSync(file);
      const quiet = await thread.checkpoint();
      expect(quiet.problems, "nobody writes any more").toEqual([]);

      for (const { id, problems } of made) {
        expect(
          problems.every((one) => /^versions(\.new)?$/.test(one.path) && one.reason.includes("changed while")),
        ).toBe(true);
        await thread.rewind({ to: id });
        expect(digestInodes(join(workspace, "d"), { times })).toEqual(beside);
        const named = problems.some((one) => one.path === "versions");
        // Whoever replaces a file whole never tears it.
        if (named && way === "in-place") continue;
        const bytes = fs.readFileSync(file);
        expect(bytes.length).toBe(size);
        expect(wasThere(bytes, way), `${id} is what the file was`).toBe(true);
      }
      await thread.rewind({ to: quiet.id });
      expect(fs.readFileSync(file).equals(last)).toBe(true);
    },
  );
}

onBothPaths("a log that grows all the time is stored as it was up to some line", {}, async () => {
  const place = makePlace();
  const file = join(place.workspace, "log");
  fs.writeFileSync(file, "");
  const writer = start("bash", [
    "--norc",
    "-c",
    'i=0; echo ready; while ! read -t 0.001 line && (( $? > 128 )); do for k in $(seq 50); do echo "line $((i++)) ............................................" >> "$0"; done; done',
    file,
  ]);
  await once(writer.stdout as NodeJS.ReadableStream, "data");
  const thread = (await useRewind(place)).thread("t");
  const made = [];
  for (let i = 0; i < 6; i++) made.push(await thread.checkpoint());
  await ended(writer);
  const whole = fs.readFileSync(file, "utf8");
  for (const { id } of made) {
    await thread.rewind({ to: id });
    const stored = fs.readFileSync(file, "utf8");
    expect(whole.startsWith(stored), `${id} is a beginning of it, named or not`).toBe(true);
  }
});

onBothPaths("files and folders that come and go while a folder is read", {}, async (times) => {
  const place = makePlace();
  const { workspace } = place;
  sh(workspace, "mkdir still churn; for i in $(seq 200); do echo $i > still/$i; echo $i > churn/$i; done");
  const writer = start("bash", [
    "--norc",
    "-c",
    'cd "$0"; echo ready; while ! read -t 0.001 line && (( $? > 128 )); do rm -rf a b; mkdir -p a/b; echo 1 > a/b/c; mv a b; rm -f 7; echo 1 > 7; ln -s x l; rm l; done',
    join(workspace, "churn"),
  ]);
  await once(writer.stdout as NodeJS.ReadableStream, "data");
  const thread = (await useRewind(place)).thread("t");
  const still = digestInodes(join(workspace, "still"), { times });
  for (let i = 0; i < 5; i++) expect((await thread.checkpoint()).reason).toBe(null);
  await ended(writer);
  fs.rmSync(join(workspace, "still"), { recursive: true });
  for (let i = 0; i < 5; i++) {
    expect((await thread.rewind({ to: `c${i}` })).notRestored).toEqual([]);
    expect(digestInodes(join(workspace, "still"), { times })).toEqual(still);
    expect(fs.readFileSync(join(workspace, "churn/199"), "utf8")).toBe("199\n");
  }
});

onBothPaths("a file that another process holds open for writing at the rewind", {}, async (times) => {
  // Without the addon nobody looks for them.
  const named = (...paths: string[]): string[] => (times === "ns" ? paths : []);
  const rewound = async (): Promise<string[]> =>
    (await thread.rewind({ to: "c0" })).notRestored.map(({ path, reason }) => {
      expect(reason).toContain("still writes to the file that was there");
      return path;
    });
  const place = makePlace();
  const { workspace } = place;
  sh(workspace, "echo one > edited; echo one > same; echo one > appended");
  const [edited, same, appended] = ["edited", "same", "appended"].map((name) => join(workspace, name)) as [
    string,
    string,
    string,
  ];
  const [first, second, third] = [new Mapper(), new Mapper(), new Mapper()];
  mappers.push(first, second, third);
  const thread = (await useRewind(place)).thread("t");
  await thread.checkpoint();
  await first.open(edited);
  await second.open(same);
  await third.open(appended);
  await first.write(0, "two");
  await third.append("two\n");
  expect((await rewound()).sort()).toEqual(named("appended", "edited"));
  // What goes on to write holds the file that was left, not the restored one.
  await first.write(0, "six");
  await third.append("six\n");
  expect(sh(workspace, "cat edited appended")).toBe("one\none\n");
  // A file that did not differ is still the file that they hold.
  await second.write(0, "six");
  expect(fs.readFileSync(same, "utf8")).toBe("six\n");
  expect(await rewound()).toEqual(named("same"));
  expect(sh(workspace, "cat edited same appended")).toBe("one\none\none\n");
});

onBothPaths("a program that runs is replaced, and its folder goes", {}, async (times) => {
  const place = makePlace();
  const { workspace } = place;
  sh(workspace, "mkdir bin; cp $(command -v sleep) bin/program");
  const thread = (await useRewind(place)).thread("t");
  const before = digestInodes(workspace, { times });
  await thread.checkpoint();
  const old = start(join(workspace, "bin/program"), ["600"]);
  sh(workspace, "rm bin/program; cp $(command -v cat) bin/program");
  const young = start(join(workspace, "bin/program"), []);
  await once(old, "spawn").catch(() => {});
  expect((await thread.rewind({ to: "c0" })).notRestored).toEqual([]);
  expect(digestInodes(workspace, { times })).toEqual(before);
  for (const child of [old, young]) expect(child.exitCode, "both still run").toBe(null);
  sh(workspace, "rm -r bin; mkdir bin2; cp $(command -v sleep) bin2/program");
  const other = start(join(workspace, "bin2/program"), ["600"]);
  expect((await thread.rewind({ to: "c0" })).notRestored).toEqual([]);
  expect(digestInodes(workspace, { times })).toEqual(before);
  expect(other.exitCode).toBe(null);
});

test.skipIf(lacking("native", "tmpfs", "python"))(
  "who writes to a file with the same number on another file system is not named",
  async () => {
    const place = makePlace();
    const { workspace } = place;
    const ends: (() => Promise<void>)[] = [];
    const other = join(place.base, "other");
    fs.mkdirSync(other);
    for (const folder of [workspace, other]) execFileSync("mount", ["-t", "tmpfs", "none", folder]);
    try {
      const rewind = await useRewind(place);
      ends.push(() => endSession(rewind));
      const thread = rewind.thread("t");
      const first = await thread.checkpoint();
      for (const name of ["file", "next"]) fs.writeFileSync(join(workspace, name), "1");
      const { ino } = fs.statSync(join(workspace, "file"));
      const twin = (): string | undefined =>
        fs.readdirSync(other).find((name) => fs.statSync(join(other, name)).ino === ino);
      for (let i = 0; twin() === undefined && i < 100; i++) fs.writeFileSync(join(other, `${i}`), "22");
      for (const file of [join(other, twin() as string), join(workspace, "next")]) {
        const mapper = new Mapper();
        mappers.push(mapper);
        await mapper.open(file);
      }
      const { notRestored } = await thread.rewind({ to: first.id });
      expect(notRestored.map(({ path }) => path)).toEqual(["next"]);
    } finally {
      for (const mapper of mappers.splice(0)) await mapper.end();
      for (const end of ends) await end();
      for (const folder of [workspace, other]) execFileSync("umount", ["-l", folder]);
    }
  },
);
