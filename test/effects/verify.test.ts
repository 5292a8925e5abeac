// A rewind whose command must succeed in the restored files: kept, or taken back exactly.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { codeOf, makePlace, useRewind } from "../helpers/workspace.ts";
import { context, digest, turn } from "../invariants/scene.ts";

async function scene(options = {}) {
  const place = makePlace();
  const rewind = await useRewind(place, options);
  const thread = rewind.thread("t");
  const at = (name: string): string => join(place.workspace, name);
  writeFileSync(at("f"), "v0");
  const v0 = digest(place);
  await turn(thread, context("m0"), { tools: () => writeFileSync(at("f"), "v1") });
  await turn(thread, context("m0", "m1"), { tools: () => writeFileSync(at("g"), "v2") });
  return { place, rewind, thread, at, v0, v2: digest(place) };
}

test("F-43: it succeeds: both halves are those of the target, and what the command wrote is taken back", async () => {
  const { place, thread, v0, v2 } = await scene();
  const result = await thread.rewind({
    to: "c0",
    lesson: "x",
    verify: "test $(cat f) = v0 && ! test -e g && echo junk > junk",
  });
  expect(result.checkpoint.id).toBe("c0");
  expect(digest(place)).toEqual(v0);
  expect(result.context.messages).toEqual(["m0"]);
  await thread.undo();
  expect(digest(place)).toEqual(v2);
});

test("it fails: everything is as it was, and the caller is told how and with what output", async () => {
  const { place, rewind, thread, v2, at } = await scene();
  const before = { head: thread.head, lessons: thread.lessons(), epoch: thread.epoch };
  const failing =
    "echo from the tests; echo password=hunter2hunter2 >&2; echo x > f; rm -f g; echo junk > junk; exit 3";
  const failure = await thread.rewind({ to: "c0", lesson: "x", verify: failing }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "VERIFY_FAILED", details: { checkpoint: "c0", how: "exit code 3" } });
  expect((failure as Error).message).toContain("from the tests");
  expect((failure as Error).message).toContain("[masked]");
  expect(digest(place)).toEqual(v2);
  expect({ head: thread.head, lessons: thread.lessons(), epoch: thread.epoch }).toEqual(before);
  expect(existsSync(at("junk"))).toBe(false);
  expect(await rewind.verify()).toEqual([]);
  expect(await codeOf(thread.undo())).toBe("NOTHING_TO_UNDO");
  await thread.rewind({ to: "c0" });
});

test("it takes too long, or leaves something running: that is ended, and the rewind taken back", async () => {
  const { place, thread, v2, at } = await scene();
  const slow = { command: ["sh", "-c", "while :; do date >> ticks; sleep 0.05; done"], timeoutMs: 300 };
  await expect(thread.rewind({ to: "c0", verify: slow })).rejects.toThrow("not done after 300 ms");
  expect(digest(place)).toEqual(v2);
  await expect(thread.rewind({ to: "c0", verify: { command: "exit 1" } })).rejects.toThrow("exit code 1");
  expect(existsSync(at("ticks"))).toBe(false);
});

test("paths only; the conversation only; and a dry run does not run it", async () => {
  const { place, thread, v2, at } = await scene();
  expect(
    await codeOf(thread.rewind({ to: "c0", paths: ["f"], verify: "test -e g && test $(cat f) = v0 && false" })),
  ).toBe("VERIFY_FAILED");
  expect(digest(place)).toEqual(v2);
  await thread.rewind({ to: "c0", paths: ["f"], verify: "test -e g && test $(cat f) = v0" });
  expect([readFileSync(at("f"), "utf8"), readFileSync(at("g"), "utf8")]).toEqual(["v0", "v2"]);
  await thread.undo();
  expect(await codeOf(thread.rewind({ to: "c0", scope: "context", verify: "false" }))).toBe("VERIFY_FAILED");
  await thread.rewind({ to: "c0", dryRun: true, verify: "touch ran" });
  expect(digest(place)).toEqual(v2);
});

test("nothing is made up for where the check takes the rewind back", async () => {
  const undone: unknown[] = [];
  const effects = { book: { class: "compensable", compensate: (args: unknown) => undone.push(args) } } as const;
  const { thread } = await scene({ effects, compensate: "always" });
  await thread.runTool({ tool: "book", args: { room: 1 } }, () => "ok");
  expect(await codeOf(thread.rewind({ to: "c0", verify: "false" }))).toBe("VERIFY_FAILED");
  expect(undone).toEqual([]);
  expect(thread.effects()).toMatchObject([{ state: "completed" }]);
  await thread.rewind({ to: "c0", verify: "true" });
  expect(undone).toEqual([{ room: 1 }]);
});

test("what is no command is refused before anything happens", async () => {
  const { thread } = await scene();
  for (const verify of ["", "  ", { command: [] }, { command: "true", timeoutMs: 0 }, { command: 7 }])
    expect(await codeOf(thread.rewind({ to: "c0", verify: verify as string }))).toBe("BAD_ARGUMENT");
  expect(thread.head).toBe("c1");
});
