// A loop that starts over after a crash: replies and the results of its tools come from the record, until it goes another way.
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { environmentTools } from "agentrewind/openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { afterEach, describe, expect, it } from "vitest";
import { allText, call, calls, mainScript, openScene, type Scene, type Script, write } from "../langchain/harness.ts";
import { chatLoop, chatTools, client, loops, type RunTool, writesFiles } from "./harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

const three: Script = (_request, all) => {
  for (const name of ["one", "two", "three"])
    if (!all.includes(`wrote ${name}.txt`)) return calls(write(`${name}.txt`, name));
  return { content: "all three" };
};

/** The loop's tool, which dies in the middle of the run at its `deadly` call; runs are counted. */
function toolOf(openai: ReturnType<typeof client>, deadly: number): { tool: RunTool; runs: () => number } {
  let runs = 0;
  const wrapped = openai.rewind.tool("write_file", async (args: Record<string, string>) => {
    if (++runs === deadly) throw new Error("the process ended here");
    return writesFiles(scene)("write_file", args);
  });
  return { tool: (_name, args) => wrapped(args), runs: () => runs };
}

describe.each(Object.entries(loops).filter(([name]) => !name.startsWith("runTools")))("%s", (_name, loop) => {
  it("0 model calls and 0 tool runs until the point of the crash, then it goes on", async () => {
    scene = await openScene(three);
    const first = client(scene);
    await expect(loop(first, toolOf(first, 3).tool, "go")).rejects.toThrow("the process ended here");
    const asked = scene.server.requests.length;
    expect(asked).toBe(3);
    await scene.reopen();
    const second = client(scene);
    const { tool, runs } = toolOf(second, -1);
    expect(await loop(second, tool, "go")).toBe("all three");
    expect(runs()).toBe(1);
    expect(scene.server.requests.length).toBe(asked + 1);
    expect(scene.files()).toEqual(["one.txt", "three.txt", "two.txt"]);
  });
});

it("over a rewind: the loop gets what it got, and the model goes on with the lesson", async () => {
  scene = await openScene(mainScript());
  const first = client(scene);
  await expect(chatLoop(first, toolOf(first, 3).tool, "go")).rejects.toThrow("the process ended here");
  const asked = scene.server.requests.length;
  await scene.reopen();
  const second = client(scene);
  const { tool, runs } = toolOf(second, -1);
  expect(await chatLoop(second, tool, "go")).toBe("all done");
  expect(runs()).toBe(1);
  expect(scene.server.requests.length).toBe(asked + 1);
  expect(allText(scene.server.requests.at(-1) as never)).toContain("bad.txt was wrong");
  expect(allText(scene.server.requests.at(-1) as never)).not.toContain("wrote bad.txt");
  expect(scene.files()).toEqual(["better.txt", "good.txt"]);
});

it("the record of a reply holds of its request what the request added", async () => {
  scene = await openScene(three);
  expect(await chatLoop(client(scene), writesFiles(scene), "go")).toBe("all three");
  const { journal } = scene.rewind.thread("t1");
  const latest = journal.get(`reply:${journal.get("latest")}`) as { shared: number; added: string[] };
  expect(latest.shared).toBe(5);
  expect(latest.added).toHaveLength(2);
});

it("another way: it stops and says where", async () => {
  scene = await openScene(three);
  const first = client(scene);
  await expect(chatLoop(first, toolOf(first, 3).tool, "go")).rejects.toThrow();
  await scene.reopen();
  const asked = scene.server.requests.length;
  const other: RunTool = () => "something else";
  await expect(chatLoop(client(scene), other, "go")).rejects.toMatchObject({
    code: "REPLAY_DIVERGED",
    message: expect.stringMatching(/message 3 \(the result of call_/),
  });
  expect(scene.server.requests.length).toBe(asked);
});

it("another prompt is another conversation, and a run that ended begins anew", async () => {
  scene = await openScene(three);
  expect(await chatLoop(client(scene), writesFiles(scene), "go")).toBe("all three");
  const asked = scene.server.requests.length;
  await scene.reopen();
  expect(await chatLoop(client(scene), writesFiles(scene), "go")).toBe("all three");
  expect(scene.server.requests.length).toBe(asked * 2);
  await scene.reopen();
  expect(await chatLoop(client(scene), writesFiles(scene), "start")).toBe("all three");
  expect(scene.server.requests.length).toBe(asked * 3);
});

it.each(["go", "begin"])(
  "a run behind one that ended (%s), also of the same prompt, starts over as well",
  async (prompt) => {
    scene = await openScene(three);
    expect(await chatLoop(client(scene), writesFiles(scene), "go")).toBe("all three");
    await scene.reopen();
    const second = client(scene);
    await expect(chatLoop(second, toolOf(second, 3).tool, prompt)).rejects.toThrow("the process ended here");
    const asked = scene.server.requests.length;
    await scene.reopen();
    const third = client(scene);
    const { tool, runs } = toolOf(third, -1);
    expect(await chatLoop(third, tool, prompt)).toBe("all three");
    expect(runs()).toBe(1);
    expect(scene.server.requests.length).toBe(asked + 1);
  },
);

it("always: a finished run is told again; never: an unfinished one is not", async () => {
  scene = await openScene(three);
  const first = client(scene);
  expect(await chatLoop(first, toolOf(first, -1).tool, "go")).toBe("all three");
  const asked = scene.server.requests.length;
  await scene.reopen();
  const again = client(scene, { replay: "always" });
  expect(await chatLoop(again, toolOf(again, -1).tool, "go")).toBe("all three");
  expect(scene.server.requests.length).toBe(asked);
  await scene.reopen();
  const never = client(scene, { replay: "never" });
  expect(await chatLoop(never, toolOf(never, -1).tool, "go")).toBe("all three");
  expect(scene.server.requests.length).toBe(asked * 2);
});

it("resume: the effective conversation with the recorded results", async () => {
  scene = await openScene(mainScript());
  const first = client(scene);
  const failing = toolOf(first, -1);
  let runs = 0;
  const tool: RunTool = async (name, args) => {
    const result = await failing.tool(name, args);
    if (++runs === 3) throw new Error("the process ended here");
    return result;
  };
  await expect(chatLoop(first, tool, "go")).rejects.toThrow();
  const asked = scene.server.requests.length;
  await scene.reopen();
  const openai = client(scene);
  const messages = (await openai.rewind.resume()) as unknown as ChatCompletionMessageParam[];
  const text = JSON.stringify(messages);
  expect(text).toContain("You are back at");
  expect(text).not.toContain("wrote bad.txt");
  expect(messages.at(-1)).toMatchObject({ role: "tool", content: "wrote better.txt" });
  const completion = await openai.chat.completions.create({ model: "scripted", messages, tools: chatTools });
  expect(completion.choices[0]?.message.content).toBe("all done");
  expect(scene.server.requests.length).toBe(asked + 1);
  expect(allText(scene.server.requests.at(-1) as never).split("bad.txt was wrong")).toHaveLength(2);
});

describe("tools whose arguments change between the model and them", () => {
  /** As a schema does it: a default comes in, what is unknown goes. */
  const parsed = (args: Record<string, string>): Record<string, string> => ({ mode: "default", path: args.path ?? "" });

  it("are recorded for their call all the same, each of several for its own", async () => {
    const both: Script = (_request, all) =>
      all.includes("wrote two") ? { content: "both" } : calls(write("one", "1"), write("two", "2"));
    scene = await openScene(both);
    const runs: string[] = [];
    const toolOf = (openai: ReturnType<typeof client>): RunTool => {
      const wrapped = openai.rewind.tool("write_file", ({ path }: Record<string, string>) => {
        runs.push(path as string);
        return `wrote ${path}`;
      });
      return (_name, args) => wrapped(parsed(args));
    };
    const dying: RunTool = async (name, args) => {
      const result = await toolOf(openai)(name, args);
      if (args.path === "two") throw new Error("the process ended here");
      return result;
    };
    const openai = client(scene);
    await expect(chatLoop(openai, dying, "go")).rejects.toThrow("the process ended here");
    await scene.reopen();
    const list: ChatCompletionMessageParam[] = [];
    const again = client(scene);
    expect(await chatLoop(again, toolOf(again), "go", list)).toBe("both");
    expect(runs).toEqual(["one", "two"]);
    expect(list.filter(({ role }) => role === "tool").map(({ content }) => content)).toEqual([
      "wrote one",
      "wrote two",
    ]);
  });
});

describe("tools of which nothing is recorded", () => {
  it.each(Object.entries(loops).filter(([name]) => !name.startsWith("runTools")))(
    "%s: they run again on the files of their moment, and what was taken back stays taken back",
    async (_name, loop) => {
      scene = await openScene(mainScript());
      let runs = 0;
      const appends =
        (deadly: number): RunTool =>
        (_tool, { path = "" }) => {
          appendFileSync(join(scene.workspace, path), "line\n");
          if (++runs === deadly) throw new Error("the process ended here");
          return `wrote ${path}`;
        };
      await expect(loop(client(scene), appends(3), "go")).rejects.toThrow("the process ended here");
      const asked = scene.server.requests.length;
      await scene.reopen();
      expect(await loop(client(scene), appends(-1), "go")).toBe("all done");
      expect(scene.server.requests.length).toBe(asked + 1);
      expect(scene.files()).toEqual(["better.txt", "good.txt"]);
      for (const name of scene.files()) expect(readFileSync(join(scene.workspace, name), "utf8")).toBe("line\n");
    },
  );

  it("the bound tools of the conversation are recorded", async () => {
    const script: Script = (_request, all) =>
      all.includes("second")
        ? { content: "done" }
        : calls(
            call("bash", { command: all.includes("first") ? "echo second | tee -a log" : "echo first | tee -a log" }),
          );
    scene = await openScene(script);
    const run = (deadly: boolean) => {
      const tools = environmentTools(scene.rewind, { thread: "t1" });
      return chatLoop(
        client(scene),
        async (name, args) => {
          const result = await tools.run(name, JSON.stringify(args));
          if (deadly && result.includes("second")) throw new Error("the process ended here");
          return result;
        },
        "go",
      );
    };
    await expect(run(true)).rejects.toThrow("the process ended here");
    await scene.reopen();
    expect(await run(false)).toBe("done");
    expect(readFileSync(join(scene.workspace, "log"), "utf8")).toBe("first\nsecond\n");
  });
});
