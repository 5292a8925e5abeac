// A rewind from outside beside a running agent: from the same process, and through the control socket.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { MemorySaver, StateSchema } from "@langchain/langgraph";
import { createMiddleware } from "langchain";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { controlFile } from "../helpers/library.ts";
import {
  allText,
  call,
  calls,
  lastText,
  makeAgent,
  occurrences,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  stored,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const thread = () => scene.rewind.thread("t");

/** Sends a request to the holder from another process. */
async function fromOtherProcess(command: string, given: Record<string, unknown>): Promise<string> {
  const locks = join(scene.store, "locks");
  const environment = readdirSync(locks)
    .find((name) => name.endsWith(".sock"))
    ?.replace(/\.sock$/, "");
  const request = { command, arguments: { thread: "t", ...given } };
  const code = `import { askHolder } from ${JSON.stringify(controlFile)};
    console.log(JSON.stringify(await askHolder(${JSON.stringify(locks)}, ${JSON.stringify(environment)}, ${JSON.stringify(request)})));`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  await once(child, "close");
  return out;
}

/** Writes 1.txt, 2.txt and 3.txt, one a turn; after a rewind from outside the next turn writes after.txt. */
const threeFiles =
  (hook: (step: string) => Promise<void> | void = () => {}) =>
  async (_request: unknown, all: string) => {
    const rewound = all.includes("back at c");
    if (rewound) return all.includes("wrote after.txt") ? { content: "end" } : calls(write("after.txt", "x"));
    const next = [1, 2, 3].find((n) => !all.includes(`wrote ${n}.txt`));
    await hook(`${next}`);
    return next === undefined ? { content: "all three" } : calls(write(`${next}.txt`, "x"));
  };

async function expectState(agent: unknown): Promise<void> {
  const { values } = await stored(agent, onThread("t"));
  const all = texts(values).join("\n");
  expect(all).not.toContain("wrote 3.txt");
  expect(occurrences(all, "back at c1")).toBe(1);
  expect(lastText(values)).toBe("end");
}

describe("between two invokes", () => {
  test("the next invoke starts from the restored pair; what had been told is told", async () => {
    scene = await openScene(threeFiles());
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    await thread().rewind({ to: "c1", lesson: "only one file" });
    expect(scene.files()).toEqual(["1.txt"]);
    const state = await run(agent, user("go on"), onThread("t"));
    await expectState(agent);
    const told = texts(state).find((text) => text.includes("back at c1")) ?? "";
    expect(told).toContain('you told the person: "all three"');
    expect(told).toContain("One message that the person sent after that point was kept");
    expect(told).toContain("1. only one file");
    expect(texts(state).indexOf("go on")).toBe(texts(state).indexOf(told) - 1);
    expect(scene.files()).toEqual(["1.txt", "after.txt"]);
    expect(lastText(await run(agent, user("more"), onThread("t")))).toBe("end");
    expect(occurrences(texts((await stored(agent, onThread("t"))).values).join("\n"), "back at c1")).toBe(1);
  });

  test("undone before the agent saw it: nothing is told, nothing is lost", async () => {
    scene = await openScene(threeFiles());
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    await thread().rewind({ to: "c1" });
    await thread().undo();
    const state = await run(agent, user("go on"), onThread("t"));
    expect(lastText(state)).toBe("all three");
    expect(texts(state).join("\n")).not.toContain("back at");
    expect(texts(state)).toContain("wrote 3.txt");
    expect(scene.files()).toEqual(["1.txt", "2.txt", "3.txt"]);
  });

  test("undone after the agent went on: it is back on the first branch", async () => {
    scene = await openScene((request, all) => {
      if (all.includes("third")) return { content: all.includes("wrote 3.txt") ? "has three" : "has not" };
      return threeFiles()(request, all);
    });
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    await thread().rewind({ to: "c1" });
    await run(agent, user("go on"), onThread("t"));
    await thread().undo();
    expect(scene.files()).toEqual(["1.txt", "2.txt", "3.txt"]);
    expect(lastText(await run(agent, user("third"), onThread("t")))).toBe("has three");
  });

  test("a checkpoint from outside does not disturb the conversation", async () => {
    scene = await openScene(threeFiles());
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    writeFileSync(join(scene.workspace, "person.txt"), "mine");
    await thread().checkpoint({ label: "mine" });
    expect(lastText(await run(agent, user("more"), onThread("t")))).toBe("all three");
    expect(scene.files()).toContain("person.txt");
    await thread().rewind({ to: "c1" });
    await run(agent, user("go on"), onThread("t"));
    expect(scene.files()).toEqual(["1.txt", "after.txt"]);
  });

  test('cases 72, 74: scope "environment" is told, and the conversation stays', async () => {
    scene = await openScene(threeFiles());
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    await thread().rewind({ to: "c1", scope: "environment" });
    expect(scene.files()).toEqual(["1.txt"]);
    const state = await run(agent, user("go on"), onThread("t"));
    const all = texts(state).join("\n");
    expect(all).toContain("Only the files were taken back");
    expect(occurrences(all, "The files are back at c1")).toBe(1);
    expect(all).toContain("wrote 3.txt");
    expect(scene.files()).toEqual(["1.txt", "after.txt"]);
  });

  test('case 75: scope "context" touches no file', async () => {
    scene = await openScene(threeFiles());
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    const before = await scene.rewind.environment.capture().captured;
    await thread().rewind({ to: "c1", scope: "context" });
    const after = await scene.rewind.environment.capture().captured;
    expect(after.manifest).toEqual(before.manifest);
    const state = await run(agent, user("go on"), onThread("t"));
    await expectState(agent);
    expect(texts(state).join("\n")).toContain("Only the conversation was taken back");
    expect(scene.files()).toEqual(["1.txt", "2.txt", "3.txt", "after.txt"]);
  });
});

describe("while a model call runs", () => {
  for (const last of [false, true]) {
    test(`case 77: the reply in flight (${last ? "an answer" : "a tool call"}) is dropped and the model asked again`, async () => {
      scene = await openScene(
        threeFiles(async (step) => {
          if (step === (last ? "undefined" : "3")) await thread().rewind({ to: "c1", lesson: "from outside" });
        }),
      );
      const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
      const state = await run(agent, start, onThread("t"));
      expect(lastText(state)).toBe("end");
      expect(scene.files()).toEqual(["1.txt", "after.txt"]);
      expect(texts(state).join("\n")).not.toContain("all three");
      await expectState(agent);
    });
  }

  test("two rewinds during one call: the last one counts, both are told in its message", async () => {
    scene = await openScene(
      threeFiles(async (step) => {
        if (step !== "3") return;
        await thread().rewind({ to: "c0", lesson: "first" });
        await thread().rewind({ to: "c1", lesson: "second" });
      }),
    );
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    const state = await run(agent, start, onThread("t"));
    expect(scene.files()).toEqual(["1.txt", "after.txt"]);
    expect(texts(state).join("\n")).toMatch(/1\. second\n2\. first/);
    await expectState(agent);
  });

  test("with channels, which go back too", async () => {
    const stateSchema = new StateSchema({ count: z.number().default(0) });
    const counter = createMiddleware({
      name: "Counter",
      stateSchema: z.object({ count: z.number().default(0) }),
      beforeModel: (state) => ({ count: state.count + 1 }),
    });
    scene = await openScene(
      threeFiles(async (step) => {
        if (step === "3") await thread().rewind({ to: "c1" });
      }),
    );
    const agent = makeAgent(scene, { checkpointer: new MemorySaver(), stateSchema, before: [counter] });
    const state = await run(agent, start, onThread("t"));
    expect(lastText(state)).toBe("end");
    expect(state.count).toBe(3);
  });
});

describe("while a tool runs", () => {
  test("the rewind waits for its end, and its result is not seen", async () => {
    let begun = (): void => {};
    const second = new Promise<void>((resolve) => {
      begun = resolve;
    });
    // Not from inside of the tool: that would wait for itself, and is refused.
    const asked = second.then(() => thread().rewind({ to: "c1", lesson: "from outside" }));
    const slow = () =>
      tool(
        async ({ path }: { path: string }) => {
          if (path === "2.txt") begun();
          await new Promise((resolve) => setTimeout(resolve, 50));
          writeFileSync(join(scene.workspace, path), "late");
          return `wrote ${path}`;
        },
        { name: "write_file", description: "w", schema: z.object({ path: z.string(), text: z.string() }) },
      );
    scene = await openScene(threeFiles());
    const agent = makeAgent(scene, { checkpointer: new MemorySaver(), tools: [slow()] });
    const state = await run(agent, start, onThread("t"));
    await asked;
    expect(lastText(state)).toBe("end");
    expect(texts(state)).not.toContain("wrote 2.txt");
    expect(scene.files()).toEqual(["1.txt", "after.txt"]);
  });
});

describe("from another process", () => {
  test.each(["both", "environment", "context"] as const)(
    "scope %s reaches the running agent at its turn boundary",
    async (scope) => {
      let asked: Promise<string> | undefined;
      scene = await openScene(
        threeFiles(async (step) => {
          if (step !== "3") return;
          asked = fromOtherProcess("rewind", { to: "c1", lesson: "from the command line", scope });
          await new Promise((resolve) => setTimeout(resolve, 1500));
        }),
      );
      const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
      const state = await run(agent, start, onThread("t"));
      expect(JSON.parse((await asked) ?? "{}").ok.checkpoint.id).toBe("c1");
      expect(lastText(state)).toBe("end");
      const all = texts((await stored(agent, onThread("t"))).values).join("\n");
      expect(occurrences(all, "back at c1")).toBe(1);
      expect(all.includes("wrote 3.txt")).toBe(scope === "environment");
      expect(scene.files()).toEqual(
        scope === "context" ? ["1.txt", "2.txt", "3.txt", "after.txt"] : ["1.txt", "after.txt"],
      );
    },
  );

  test("undo, when no agent runs", async () => {
    scene = await openScene((_request, all) =>
      all.includes("You are back") || all.includes("wrote a.txt")
        ? all.includes("You are back")
          ? { content: "end" }
          : calls(call("rewind", { checkpoint: "c0", lesson: "no" }))
        : calls(write("a.txt", "x")),
    );
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    expect(scene.files()).toEqual([]);
    const answer = JSON.parse(await fromOtherProcess("undo", {}));
    expect(answer.ok.message).toContain("You are back at");
    expect(scene.files()).toEqual(["a.txt"]);
    await run(agent, user("next"), onThread("t"));
    expect(allText(scene.server.requests.at(-1) as never)).toContain("wrote a.txt");
  });
});
