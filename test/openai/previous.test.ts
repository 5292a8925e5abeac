// Loops that go on from the server's reply by its name: the conversation is known whole all the same.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { allText, call, calls, openScene, type Scene, type Script, write } from "../langchain/harness.ts";
import { type Client, client, responsesTools, writesFiles } from "./harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

const lastText = (): string => allText(scene.server.requests.at(-1) as never);

type Input = OpenAI.Responses.ResponseInputItem[];

/** Runs until the model has nothing to do, from a reply on. Returns the last words and the reply's id. */
async function run(openai: Client, input: Input, from?: string): Promise<{ said: string; id: string }> {
  let previous = from;
  for (let next = input; ; ) {
    const response: OpenAI.Responses.Response = await openai.responses.create({
      model: "scripted",
      input: next,
      tools: responsesTools,
      ...(previous === undefined ? {} : { previous_response_id: previous }),
    });
    previous = response.id;
    next = [];
    for (const item of response.output) {
      if (item.type !== "function_call") continue;
      const output = await writesFiles(scene)(item.name, JSON.parse(item.arguments));
      next.push({ type: "function_call_output", call_id: item.call_id, output });
    }
    if (next.length === 0) return { said: response.output_text, id: previous };
  }
}

const rewindTo = (checkpoint: string) => calls(call("rewind", { checkpoint, lesson: "not so" }));

/** Writes a file for each person's message, and rewinds to the first checkpoint when it hears "back". */
const script: Script = (_request, all) => {
  if (all.includes("You are back at"))
    return all.includes("wrote again") ? { content: "done" } : calls(write("again", "x"));
  if (all.includes("back") && !all.includes("Not done")) return rewindTo("c0");
  if (all.includes("Not done")) return { content: "refused" };
  return all.includes("wrote a") ? { content: "written" } : calls(write("a", "x"));
};

it.each(["system", "developer"] as const)(
  "the instructions of the first request (%s) survive a rewind to it",
  async (role) => {
    scene = await openScene(script);
    const openai = client(scene);
    const first = await run(openai, [
      { role, content: "NEVER touch production." },
      { role: "user", content: "go" },
    ]);
    expect((await run(openai, [{ role: "user", content: "back" }], first.id)).said).toBe("done");
    expect(scene.server.requests.at(-1)?.messages[0]).toMatchObject({ role, content: "NEVER touch production." });
    expect(lastText()).not.toContain("wrote a\n");
  },
);

it("what a person said since stays, and what was done is named", async () => {
  scene = await openScene(script);
  const openai = client(scene);
  const first = await run(openai, [{ role: "user", content: "go" }]);
  await run(openai, [{ role: "user", content: "back, and do not forget the licence" }], first.id);
  expect(lastText()).toContain("do not forget the licence");
  expect(lastText()).toContain('You are back at c0, before: write_file {"path":"a","text":"x"}');
  expect(scene.files()).toEqual(["again"]);
});

it("refuse: a rewind that would cross a person's message is refused", async () => {
  scene = await openScene(script);
  const openai = client(scene, { humanMessages: "refuse" });
  const first = await run(openai, [{ role: "user", content: "go" }]);
  expect((await run(openai, [{ role: "user", content: "back" }], first.id)).said).toBe("refused");
  expect(scene.files()).toEqual(["a"]);
});

it("turns whose tools changed no file can be taken back", async () => {
  scene = await openScene(script);
  const openai = client(scene);
  writeFileSync(join(scene.workspace, "a"), "x");
  const first = await run(openai, [{ role: "user", content: "go" }]);
  expect((await run(openai, [{ role: "user", content: "back" }], first.id)).said).toBe("done");
});

describe("another process", () => {
  it("goes on from the reply, and rewinds behind it", async () => {
    scene = await openScene(script);
    const first = await run(client(scene), [{ role: "user", content: "go" }]);
    await scene.reopen();
    const openai = client(scene);
    expect((await run(openai, [{ role: "user", content: "back" }], first.id)).said).toBe("done");
    expect(lastText()).not.toContain("wrote a\n");
    expect(scene.files()).toEqual(["again"]);
  });

  it("resume gives the whole conversation, which can be gone on from without the server's memory", async () => {
    scene = await openScene(script);
    await run(client(scene), [
      { role: "system", content: "Be brief." },
      { role: "user", content: "go" },
    ]);
    await scene.reopen();
    const openai = client(scene);
    const items: Input = await openai.rewind.resume();
    expect(JSON.stringify(items)).toMatch(/Be brief.*"go".*function_call.*wrote a.*written/);
    expect((await run(openai, [...items, { role: "user", content: "more" }])).said).toBe("written");
    expect(scene.files()).toEqual(["a"]);
  });
});

it("an older reply to go on from brings the files along", async () => {
  const two: Script = (_request, all) =>
    all.includes("wrote b") || (all.includes("wrote a") && !all.includes("more"))
      ? { content: "written" }
      : calls(write(all.includes("wrote a") ? "b" : "a", "x"));
  scene = await openScene(two);
  const openai = client(scene);
  const first = await run(openai, [{ role: "user", content: "go" }]);
  await run(openai, [{ role: "user", content: "more" }], first.id);
  expect(scene.files()).toEqual(["a", "b"]);
  await run(openai, [{ role: "user", content: "thanks" }], first.id);
  expect(scene.files()).toEqual(["a"]);
  expect(lastText()).not.toContain("wrote b");
});
