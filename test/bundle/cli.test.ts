// `agentrewind export` and `import`: alone, beside a process that holds the workspace, and refused.
import { once } from "node:events";
import * as fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { base, children, done, get, json, put, refused, run, store, workspace } from "../helpers/command.ts";
import { startSteps } from "../helpers/steps.ts";

const at = (name: string): string => join(base, name);

test("a thread goes out and comes in, in words and as JSON", async () => {
  put("a", "1");
  await json("checkpoint", "--label", "one");
  put("a", "2");
  await json("checkpoint");
  const told = await done("export", "--to", "../whole.bundle");
  expect(told).toMatch(/^2 checkpoints of thread cli: \S+\/whole\.bundle \([\d.]+ KiB\)\.\nIt holds whatever .+\n$/);
  expect(fs.statSync(at("whole.bundle")).mode & 0o777).toBe(0o600);
  expect(await json("export", "c0", "--to", at("one.bundle"))).toEqual({
    ...{ file: at("one.bundle"), bytes: fs.statSync(at("one.bundle")).size, thread: "cli", checkpoint: "c0" },
    ...{ checkpoints: 1, problems: [] },
  });

  const lines = (await done("import", "../whole.bundle", "--into", "../moved dir")).split("\n");
  expect(lines[0]).toBe(`2 checkpoints of thread cli in ${at("moved dir")} (directory), at c1.`);
  expect(lines[1]).toBe(`To go on: agentrewind --workspace '${at("moved dir")}' list`);
  expect(fs.readFileSync(at("moved dir/a"), "utf8")).toBe("2");
  await done("--workspace", at("moved dir"), "rewind", "c0");
  expect(fs.readFileSync(at("moved dir/a"), "utf8")).toBe("1");
  expect(get("a")).toBe("2");
  expect(await done("--workspace", at("moved dir"), "verify")).toMatch(/^Sound/);

  const other = at("other-store");
  expect(await json("--store", other, "import", at("one.bundle"), "--into", at("single"))).toEqual({
    ...{ workspace: at("single"), environment: "directory", thread: "cli", checkpoint: "c0", checkpoints: 1 },
    ...{ notRestored: [], processes: null, unlike: [] },
  });
  expect(fs.readFileSync(at("single/a"), "utf8")).toBe("1");
  expect(await json("--store", other, "--workspace", at("single"), "list")).toMatchObject([{ id: "c0", label: "one" }]);
});

test("beside a process that holds the workspace, in the middle of a turn", async () => {
  put("a", "held");
  const child = startSteps({ workspace, store }, [
    { op: "open" },
    { op: "turn", thread: "t", context: { messages: ["m0"] } },
    { op: "hold" },
  ]);
  children.push(child);
  for await (const line of child.stdout as NodeJS.ReadableStream) if (String(line).includes("holding")) break;
  const made = await json("--thread", "t", "export", "--to", "../t.bundle");
  expect(made).toMatchObject({ file: at("t.bundle"), thread: "t", checkpoints: 1 });
  await done("import", at("t.bundle"), "--into", at("moved"));
  expect(fs.readFileSync(at("moved/a"), "utf8")).toBe("held");
  await refused(["export", "--to", "inside.bundle"], 2, "BAD_ARGUMENT");
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
});

test("what is wrong is told in one line, with a status", async () => {
  await refused(["export", "--to", "../x"], 1, "NO_THREAD");
  put("a", "1");
  await json("checkpoint");
  await refused(["export"], 2, "BAD_ARGUMENT");
  await refused(["export", "c9", "--to", "../x"], 1, "UNKNOWN_CHECKPOINT");
  await refused(["export", "--to", "x"], 2, "BAD_ARGUMENT");
  await refused(["import"], 2, "BAD_ARGUMENT");
  await refused(["import", "../none", "--into", "../w"], 2, "BAD_ARGUMENT");
  await done("export", "--to", "../x");
  await refused(["export", "--to", "../x"], 2, "BAD_ARGUMENT");
  await refused(["import", "x"], 1, "FOLDER_NOT_EMPTY", { cwd: base });
  await refused(["import", "../x", "--into", "../w", "--processes", "kill"], 2, "BAD_ARGUMENT");
  fs.truncateSync(at("x"), 100);
  await refused(["import", "../x", "--into", "../w"], 1, "BUNDLE_DAMAGED");
  expect(fs.existsSync(at("w"))).toBe(false);
  const help = (await run(["--help"])).stdout;
  expect(help).toMatch(/^ {2}export \[options\] \[id\] +write the thread/m);
  expect(help).toMatch(/^ {2}import \[options\] <file> +make a workspace/m);
});
