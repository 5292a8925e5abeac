// What a person did is safe: each case of lost work as a test, whoever rewinds and however.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { digestTree } from "./helpers/digest.ts";
import { endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

const sh = (place: Place, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd: place.workspace, encoding: "utf8", stdio: "pipe" });
const digest = (place: Place): string[] => digestTree(place.workspace);
const context = (...messages: string[]) => ({ messages });

test("a command that still runs is ended before a rewind: nothing of it is written afterwards", async () => {
  const place = makePlace();
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  sh(place, "echo 1 > a");
  await thread.checkpoint({ context: context("m0") });
  const v0 = digest(place);
  const running = rewind.environment.exec("echo 2 > a; echo begun > begun; sleep 60; echo late > late");
  while (!fs.existsSync(join(place.workspace, "begun")));
  const result = await thread.rewind({ to: "c0" });
  expect(await running).toMatchObject({ exitCode: null, signal: "SIGKILL" });
  expect(digest(place)).toEqual(v0);
  expect(result.restored.removed).toEqual(["begun"]);
  await thread.undo();
  expect(sh(place, "cat a begun; ls")).toBe("2\nbegun\na\nbegun\n");
});

test("a dry run and a rewind of the conversation end no command", async () => {
  const place = makePlace();
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  await thread.checkpoint({ context: context("m0") });
  await thread.checkpoint({ context: context("m0", "m1") });
  const running = rewind.environment.exec("cat > /dev/null; read -t 1 x < <(sleep 2); echo done");
  await thread.rewind({ to: "c0", dryRun: true });
  await thread.rewind({ to: "c0", scope: "context" });
  expect((await running).stdout).toBe("done\n");
});

test("case 11: a file that an ignore rule protected survives the rewind of the rule, behind undo, or kept", async () => {
  const place = makePlace();
  const thread = (await useRewind(place)).thread("t");
  sh(place, "git init -q .; echo '*.log' > .gitignore");
  const turn = async (name: string, tools: () => void): Promise<void> => {
    await (await thread.beginTurn(context(name), { anchor: name })).gate({ tools: true });
    tools();
  };
  await turn("m0", () => {});
  await (await thread.beginTurn(context("m1"), { anchor: "m1" })).gate({ tools: false });
  sh(place, "echo secret.env >> .gitignore; echo TOKEN=1 > secret.env");
  const before = digest(place);
  await turn("m2", () => {});
  const kept = await thread.rewind({ to: "c0", by: "agent", lesson: "l", external: "keep" });
  expect(kept.external).toEqual([".gitignore", "secret.env"]);
  expect(digest(place).slice(1), "all but the times of the workspace itself").toEqual(before.slice(1));
  await thread.rewind({ to: "c0" });
  expect(fs.existsSync(join(place.workspace, "secret.env"))).toBe(false);
  await thread.undo();
  expect(digest(place).slice(1)).toEqual(before.slice(1));
});

test("case 26: only what was done since is undone; a new session starts from the disk as it is", async () => {
  const place = makePlace();
  const first = await useRewind(place);
  sh(place, "echo old > f");
  await first.thread("weeks ago").checkpoint({ context: context("x") });
  await endSession(first);
  sh(place, "echo new > f; echo more > g");
  const now = digest(place);
  const thread = (await useRewind(place)).thread("today");
  const { id } = await thread.checkpoint({ context: context("m0") });
  sh(place, "echo edit > f");
  await thread.rewind({ to: id });
  expect(digest(place)).toEqual(now);
});

test("case 28: back, forth and back again, with an edit by hand in between", async () => {
  const place = makePlace();
  const thread = (await useRewind(place)).thread("t");
  sh(place, "echo v1 > f");
  await thread.checkpoint({ context: context("m0") });
  sh(place, "echo v2 > f");
  await thread.checkpoint({ context: context("m0", "m1") });
  sh(place, "echo v3, by hand > f");
  const v3 = digest(place);
  await thread.rewind({ to: "c0" });
  const back = await thread.undo();
  expect(digest(place)).toEqual(v3);
  expect(back.context.messages).toEqual(["m0", "m1"]);
});

test("case 29: a refusal of the system is told, and the checkpoint works again when it is gone", async () => {
  const place = makePlace();
  const thread = (await useRewind(place)).thread("t");
  sh(place, "mkdir d; echo 1 > d/f");
  await thread.checkpoint({ context: context("m0") });
  const v0 = digest(place);
  sh(place, "rm -r d; mkdir d; echo 2 > d/f");
  const folder = join(place.workspace, "d");
  const held = fs.openSync(join(folder, "f"), "r+");
  await thread.rewind({ to: "c0" });
  expect(digest(place)).toEqual(v0);
  fs.writeSync(held, "3");
  fs.closeSync(held);
  expect(digest(place), "who held the old file writes to the old file").toEqual(v0);
  await thread.rewind({ to: "c0" });
  expect(digest(place)).toEqual(v0);
});

test("case 30: commits made since are in the state that was left, and a rewind by path leaves the branch alone", async () => {
  const place = makePlace();
  const thread = (await useRewind(place)).thread("t");
  const git = "git -c user.name=n -c user.email=e";
  sh(place, `git init -q .; echo 1 > f; git add f; ${git} commit -qm one`);
  await thread.checkpoint({ context: context("m0") });
  sh(place, `echo 2 > f; ${git} commit -qam two; echo 3 > f; ${git} commit -qam three`);
  const head = sh(place, "git rev-parse HEAD");
  const now = digest(place);
  await thread.rewind({ to: "c0", paths: ["f"] });
  expect([sh(place, "git rev-parse HEAD"), sh(place, "cat f")]).toEqual([head, "1\n"]);
  await thread.undo();
  await thread.rewind({ to: "c0" });
  expect(sh(place, "git log --oneline | wc -l").trim()).toBe("1");
  await thread.undo();
  expect(digest(place)).toEqual(now);
});

test("case 31: a dry run names what would be lost, and the rewind does just that", async () => {
  const place = makePlace();
  const thread = (await useRewind(place)).thread("t");
  sh(place, "echo 1 > f");
  await thread.checkpoint({ context: context("m0") });
  sh(place, "echo dirty > f; echo dirty > g");
  const plan = await thread.rewind({ to: "c0", dryRun: true });
  const done = await thread.rewind({ to: "c0" });
  expect(plan.restored).toEqual(done.restored);
  expect(plan.restored).toMatchObject({ changed: ["f"], removed: ["g"] });
  expect(done.left?.changes).toMatchObject({ changed: ["f"], added: ["g"] });
});
