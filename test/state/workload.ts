// One small workload for each kernel resource: build it, checkpoint, change or destroy it, rewind, and compare from outside.
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { expect, test } from "vitest";
import { type Capability, lacking } from "../capabilities.ts";
import { digestTree } from "../helpers/digest.ts";
import { digestInodes } from "../helpers/inode.ts";
import { makePlace, useRewind } from "../helpers/workspace.ts";

export interface Workload {
  readonly build: (root: string) => void;
  readonly change: (root: string) => void;
  /** The resource is beyond what the portable path declares. */
  readonly nativeOnly?: boolean;
  readonly needs?: readonly Capability[];
  /** The portable path takes zeros that were written beside holes for holes: there content alone is compared. */
  readonly guessedHoles?: boolean;
}

export const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });

/** Removes everything in a folder, however deep, but not the folder. */
export const destroy = (folder: string): void => void sh(folder, "find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +");

/** Runs a test on the native path and, unless its resource is beyond that, on the portable one. */
export function onBothPaths(
  title: string,
  { needs = [], nativeOnly = false }: Omit<Workload, "build" | "change">,
  run: (times: "ns" | "us") => Promise<void>,
): void {
  test.skipIf(lacking("native", "python", ...needs))(`${title}, native`, () => run("ns"));
  if (nativeOnly) return;
  test.skipIf(lacking("python", ...needs))(`${title}, portable`, async () => {
    process.env.AGENTREWIND_NATIVE = "off";
    try {
      await run("us");
    } finally {
      delete process.env.AGENTREWIND_NATIVE;
    }
  });
}

/** The state of the checkpoint comes back after a change and after everything is gone; undo brings back what a rewind left. */
export function workload(title: string, { build, change, guessedHoles = false, ...where }: Workload): void {
  onBothPaths(title, where, async (times) => {
    const { workspace, store } = makePlace();
    const contentOnly = guessedHoles && times === "us";
    const digest = (): string[] =>
      contentOnly ? digestTree(workspace, { times }) : digestInodes(workspace, { times });
    build(workspace);
    const thread = (await useRewind({ base: "", workspace, store })).thread("t");
    const before = digest();
    const rootInode = statSync(workspace).ino;
    const c0 = await thread.checkpoint();
    expect(c0.problems).toEqual([]);
    expect(digest(), "a capture changes nothing").toEqual(before);

    change(workspace);
    const after = digest();
    expect(after, "the change changes something").not.toEqual(before);
    const back = await thread.rewind({ to: c0.id });
    expect(back.notRestored).toEqual([]);
    expect(digest(), "changed and rewound").toEqual(before);
    expect((await thread.undo()).notRestored).toEqual([]);
    expect(digest(), "undone").toEqual(after);

    destroy(workspace);
    const again = await thread.rewind({ to: c0.id });
    expect(again.notRestored).toEqual([]);
    expect(digest(), "destroyed and rewound").toEqual(before);
    expect((await thread.checkpoint()).environment, "equal states have equal snapshots").toEqual(c0.environment);
    expect(statSync(workspace).ino, "the root keeps its inode").toBe(rootInode);
  });
}
