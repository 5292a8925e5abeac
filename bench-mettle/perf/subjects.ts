// What is checkpointed: made trees, this project's node_modules, a SQLite database. Each knows how to change a little of itself.
import { execFileSync } from "node:child_process";
import { appendFileSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { Size } from "./options.ts";

export interface Census {
  readonly entries: number;
  readonly files: number;
  readonly bytes: number;
}

export interface Subject {
  readonly name: string;
  readonly about: string;
  /** The folder that every arm gets a copy of. */
  readonly folder: string;
  readonly census: Census;
  /** Changes `count` files, or rows; different ones for each `step`, the same in every copy. */
  change(work: string, count: number, step: number): void;
  /** Content of what `change(work, 1, step)` changes. */
  peek(work: string, step: number): Buffer | string;
}

const modules = fileURLToPath(new URL("../../node_modules", import.meta.url));
/** The number of files that means node_modules, and what is kept of it. */
export const realFiles = 10_000;
const realBytes = 160e6;

export function makeSubject(size: Size, folder: string): Subject {
  mkdirSync(folder);
  if ("databaseMiB" in size) return makeDatabase(size.databaseMiB, folder);
  if (size.files === realFiles) copyModules(folder);
  else makeTree(size.files, folder);
  return treeSubject(size.files, folder);
}

export function census(folder: string): Census {
  let entries = 0;
  let files = 0;
  let bytes = 0;
  for (const { entry, path } of walk(folder)) {
    entries++;
    if (!entry.isFile()) continue;
    files++;
    bytes += lstatSync(path).size;
  }
  return { entries, files, bytes };
}

function* walk(folder: string) {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!relative(folder, path).split("/").includes(".git")) yield { entry, path };
  }
}

/** The same numbers in every run (a linear congruential generator). */
function numbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const words = "the of a const return import from value await error path file if else class export type string".split(
  " ",
);

/** Text like source code: 4 KB a file on average, 20 files a folder. */
function makeTree(files: number, folder: string): void {
  const random = numbers(files);
  for (let index = 0; index < files; index++) {
    const group = Math.floor(index / 20);
    const parent = join(folder, `part-${group % 50}`, `module-${Math.floor(group / 50)}`);
    if (index % 20 === 0) mkdirSync(parent, { recursive: true });
    const lines: string[] = [];
    let length = 200 + random(2) * random(15_000);
    while (length > 0) {
      const line = Array.from({ length: 10 }, () => words[random(words.length)]).join(" ");
      lines.push(`${line} ${random(1e6)}`);
      length -= line.length + 8;
    }
    writeFileSync(join(parent, `file-${index}.ts`), lines.join("\n"));
  }
}

/** Copies whole packages: without those that are a few huge binaries, then without as many small ones as bring the number of files down. */
function copyModules(folder: string): void {
  const packages = readdirSync(modules)
    .filter((name) => name !== ".cache")
    .flatMap((name) =>
      name.startsWith("@") ? readdirSync(join(modules, name)).map((one) => `${name}/${one}`) : [name],
    )
    .sort()
    .map((name) => {
      const path = join(modules, name);
      return { name, ...(lstatSync(path).isDirectory() ? census(path) : { files: 1, bytes: lstatSync(path).size }) };
    });
  const sum = (of: "files" | "bytes"): number => packages.reduce((total, one) => total + one[of], 0);
  const drop = (found: (typeof packages)[number] | undefined): boolean =>
    found !== undefined && packages.splice(packages.indexOf(found), 1).length > 0;
  const byWeight = () => [...packages].sort((a, b) => b.bytes / b.files - a.bytes / a.files);
  const spareBytes = () => sum("bytes") - realBytes;
  const spareFiles = () => sum("files") - realFiles;
  while (
    spareBytes() > 0.05 * realBytes &&
    drop(byWeight().find((one) => one.bytes > 1e6 && one.bytes < spareBytes() * 1.1))
  );
  while (
    spareFiles() > 0.05 * realFiles &&
    drop(byWeight().findLast((one) => one.files > 50 && one.files < spareFiles()))
  );
  for (const { name } of packages) {
    const target = join(folder, name);
    mkdirSync(join(target, ".."), { recursive: true });
    execFileSync("cp", ["-a", join(modules, name), target]);
  }
}

function treeSubject(files: number, folder: string): Subject {
  const real = files === realFiles;
  const candidates: string[] = [];
  for (const { entry, path } of walk(folder)) {
    if (entry.isFile() && lstatSync(path).nlink === 1) candidates.push(relative(folder, path));
  }
  candidates.sort();
  const random = numbers(1);
  for (let index = candidates.length - 1; index > 0; index--) {
    const other = random(index + 1);
    [candidates[index], candidates[other]] = [candidates[other] as string, candidates[index] as string];
  }
  const pick = (index: number): string => candidates[index % candidates.length] as string;
  return {
    name: `${files.toLocaleString("en")} files`,
    about: real ? "this project's node_modules, some packages left out" : "made text files",
    folder,
    census: census(folder),
    change(work, count, step) {
      for (let index = 0; index < count; index++) appendFileSync(join(work, pick(step * 101 + index)), `// ${step}\n`);
    },
    peek: (work, step) => readFileSync(join(work, pick(step * 101))),
  };
}

const rowBytes = 2_000;

function makeDatabase(mebibytes: number, folder: string): Subject {
  const file = "data.sqlite";
  const rows = Math.floor((mebibytes * 2 ** 20) / 2_048);
  const database = new Database(join(folder, file));
  database.exec(
    "PRAGMA synchronous = OFF; PRAGMA page_size = 4096; CREATE TABLE item (id INTEGER PRIMARY KEY, body BLOB)",
  );
  const insert = database.prepare(
    "WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO item SELECT i, randomblob(?) FROM n",
  );
  const step = 50_000;
  for (let first = 1; first <= rows; first += step) insert.run(first, Math.min(rows, first + step - 1), rowBytes);
  database.close();
  const within = <T>(work: string, use: (database: Database.Database) => T): T => {
    const opened = new Database(join(work, file), { fileMustExist: true });
    try {
      return use(opened);
    } finally {
      opened.close();
    }
  };
  const idOf = (index: number): number => 1 + numbers(index + 7)(rows);
  return {
    name: `SQLite ${mebibytes} MiB`,
    about: `a database of ${rows} rows of ${rowBytes} random bytes in one file; rows are changed instead of files`,
    folder,
    census: census(folder),
    change(work, count, step) {
      within(work, (opened) => {
        const update = opened.prepare("UPDATE item SET body = randomblob(?) WHERE id = ?");
        opened.transaction(() => {
          for (let index = 0; index < count; index++) update.run(rowBytes, idOf(step * 101 + index));
        })();
      });
    },
    peek: (work, step) =>
      within(
        work,
        (opened) =>
          opened
            .prepare("SELECT hex(body) FROM item WHERE id = ?")
            .pluck()
            .get(idOf(step * 101)) as string,
      ),
  };
}
