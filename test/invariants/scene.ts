// What the invariants' tests share: turns as an adapter makes them, files, and the store's rows as they lie on the disk.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Activity, Checkpoint, Context, Thread, TurnOptions } from "agentrewind";
import Database from "better-sqlite3";
import { digestTree } from "../helpers/digest.ts";
import type { Place } from "../helpers/workspace.ts";

export const context = (...messages: string[]): Context => ({ messages });
export const digest = (place: Place): string[] => digestTree(place.workspace);

export function write(place: Place, path: string, text: string): void {
  const file = join(place.workspace, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
export const read = (place: Place, path: string): string => readFileSync(join(place.workspace, path), "utf8");
export const has = (place: Place, path: string): boolean => existsSync(join(place.workspace, path));
export const remove = (place: Place, path: string): void => rmSync(join(place.workspace, path), { recursive: true });
export const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });

export const did = (tool: string, input = ""): Activity => ({
  said: "",
  actions: [{ tool, input, output: "", failed: false }],
});

export interface TurnPlan extends TurnOptions {
  /** Runs while the model thinks: somebody else's work. */
  readonly meanwhile?: () => void;
  /** The reply's tools. Without them the reply calls none. */
  readonly tools?: () => void;
}

/** One turn as an adapter makes it: the pair, the model call, the gate, the tools. */
export async function turn(
  thread: Thread,
  seen: Context,
  { meanwhile, tools, ...options }: TurnPlan = {},
): Promise<Checkpoint> {
  const begun = await thread.beginTurn(seen, options);
  if (meanwhile !== undefined) {
    await begun.durable;
    meanwhile();
  }
  const made = await begun.gate({ tools: tools !== undefined });
  tools?.();
  return made;
}

/** c0 with v0 in the files; its tools made v1, which is c1. */
export async function twoTurns(thread: Thread, place: Place): Promise<{ v0: string[]; v1: string[] }> {
  write(place, "a.txt", "v0");
  write(place, "kept/same.txt", "same");
  const v0 = digest(place);
  await turn(thread, context("m0"), {
    anchor: "m0",
    tools: () => {
      write(place, "a.txt", "v1, longer");
      write(place, "new/b.txt", "v1");
    },
  });
  const v1 = digest(place);
  await turn(thread, context("m0", "m1"), { anchor: "m1", activity: did("shell", "make"), tools: () => {} });
  return { v0, v1 };
}

/** Rows of the catalog, read by a connection of its own. */
export function rows(store: string, query: string): Record<string, unknown>[] {
  const sql = new Database(join(store, "catalog.db"), { readonly: true });
  try {
    return sql.prepare(query).all() as Record<string, unknown>[];
  } finally {
    sql.close();
  }
}

/** Everything that the catalog says about threads; not the object rows, which nobody sees without a checkpoint. */
export const catalogRows = (store: string): unknown =>
  ["workspace", "environment", "thread", "checkpoint", "manifest", "rewind", "lesson", "intent"].map((table) => [
    table,
    rows(store, `SELECT * FROM ${table} ORDER BY id`),
  ]);
