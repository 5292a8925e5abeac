// What callers do with their list of messages, and what the model may see of it afterwards.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { afterEach, describe, expect, it } from "vitest";
import {
  allText,
  call,
  calls,
  idBefore,
  mainScript,
  occurrences,
  openScene,
  type Scene,
  type Script,
  write,
} from "../langchain/harness.ts";
import { type Client, chatLoop, chatTools, client, loops, responsesLoop, writesFiles } from "./harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

/** Runs the main path, then answers whatever comes. */
const andOn: Script = (request, all) =>
  all.includes("next task") ? { content: "next done" } : mainScript()(request, all);

const ask = async (openai: Client, messages: unknown[]) => {
  const completion = await openai.chat.completions.create({
    model: "scripted",
    messages: messages as ChatCompletionMessageParam[],
    tools: chatTools,
  });
  return completion.choices[0]?.message;
};

const lastText = (): string => allText(scene.server.requests.at(-1) as never);

async function afterRewind(): Promise<{ openai: Client; list: ChatCompletionMessageParam[] }> {
  scene = await openScene(andOn);
  const openai = client(scene);
  const list: ChatCompletionMessageParam[] = [];
  expect(await chatLoop(openai, writesFiles(scene), "go", list)).toBe("all done");
  expect(JSON.stringify(list)).toContain("wrote bad.txt");
  return { openai, list };
}

const expectElided = (): void => {
  expect(lastText()).not.toContain("bad.txt\n");
  expect(lastText()).not.toContain("wrote bad.txt");
  expect(occurrences(lastText(), "bad.txt was wrong; write better.txt")).toBe(1);
};

describe("the caller's list after a rewind", () => {
  it("a copy of the list", async () => {
    const { openai, list } = await afterRewind();
    await ask(openai, structuredClone([...list, { role: "user", content: "next task" }]));
    expectElided();
    expect(lastText()).toContain("wrote good.txt");
  });

  it("results that the caller has shortened stay short, and nothing abandoned comes back", async () => {
    const { openai, list } = await afterRewind();
    const shortened = list.map((one) => (one.role === "tool" ? { ...one, content: "(cleared)" } : one));
    await ask(openai, [...shortened, { role: "user", content: "next task" }]);
    expectElided();
    expect(lastText()).not.toContain("wrote good.txt");
    expect(lastText()).toContain("(cleared)");
  });

  it("cut at its beginning, inside of what was abandoned", async () => {
    const { openai, list } = await afterRewind();
    const at = list.findIndex((one) => one.role === "tool" && one.content === "wrote bad.txt");
    await ask(openai, [...list.slice(at - 1), { role: "user", content: "next task" }]);
    expectElided();
    expect(lastText()).not.toContain("wrote good.txt");
  });

  it("compacted: everything but the newest messages became a summary", async () => {
    const { openai, list } = await afterRewind();
    const newest = list.findIndex((one) => one.role === "tool" && one.content === "wrote better.txt") - 1;
    const summary = { role: "user", content: "Summary: good.txt is written." };
    await ask(openai, [summary, ...list.slice(newest), { role: "user", content: "next task" }]);
    expectElided();
    expect(lastText()).toContain("Summary: good.txt is written.");
    expect(lastText()).toContain("wrote better.txt");
  });

  it("a message that was abandoned and then edited stays left out", async () => {
    const { openai, list } = await afterRewind();
    const edited = list.map((one) =>
      one.role === "assistant" && JSON.stringify(one).includes("bad.txt")
        ? { ...one, tool_calls: undefined, content: "I wrote a file called bad.txt" }
        : one,
    );
    const withoutResult = edited.filter((one) => one.role !== "tool" || one.content !== "wrote bad.txt");
    await ask(openai, [...withoutResult, { role: "user", content: "next task" }]);
    expectElided();
    expect(lastText()).not.toContain("I wrote a file called");
  });

  it("other instructions in front each time", async () => {
    const { openai, list } = await afterRewind();
    await ask(openai, [{ role: "system", content: "It is noon." }, ...list, { role: "user", content: "next task" }]);
    expectElided();
    expect(lastText()).toContain("It is noon.");
  });

  it("a new process with the caller's old list", async () => {
    const { list } = await afterRewind();
    await scene.reopen();
    await ask(client(scene), [...list, { role: "user", content: "next task" }]);
    expectElided();
    expect(lastText()).toContain("wrote good.txt");
  });

  it("none of it is known: an error with a code, and nothing was asked", async () => {
    const { openai } = await afterRewind();
    const before = scene.server.requests.length;
    const other = [
      { role: "user", content: "something else" },
      { role: "assistant", content: "as you say" },
      { role: "user", content: "next task" },
    ];
    await expect(ask(openai, other)).rejects.toMatchObject({ code: "HISTORY_UNKNOWN", status: 400 });
    expect(scene.server.requests.length).toBe(before);
  });

  it("a request without tools on the same list leaves the abandoned part out as well", async () => {
    const { openai, list } = await afterRewind();
    await openai.chat.completions.create({
      model: "scripted",
      messages: [...list, { role: "user", content: "next task" }],
    });
    expectElided();
  });

  it("a request that is no turn of this conversation passes untouched", async () => {
    const { openai } = await afterRewind();
    await openai.chat.completions.create({ model: "scripted", messages: [{ role: "user", content: "next task" }] });
    expect(scene.server.requests.at(-1)?.messages).toEqual([{ role: "user", content: "next task" }]);
    expect(scene.server.requests.at(-1)?.tools).toBeUndefined();
  });
});

describe("a list that says nothing of going back moves no files", () => {
  /** Writes `work.txt`, then answers; later requests are answered at once. */
  const works: Script = (_request, all) =>
    all.includes("wrote work.txt") || all.includes("next task")
      ? { content: "Done." }
      : all.includes("again")
        ? { content: "Nothing to do." }
        : calls(write("work.txt", "1"));
  const worked = async () => {
    scene = await openScene(works);
    const openai = client(scene);
    const list: ChatCompletionMessageParam[] = [];
    await chatLoop(openai, writesFiles(scene), "go", list);
    writeFileSync(join(scene.workspace, "human.txt"), "an hour of work");
    return { openai, list };
  };
  const kept = () => expect(scene.files()).toEqual(["human.txt", "work.txt"]);

  it("only the words are kept between two questions", async () => {
    const { openai, list } = await worked();
    await ask(openai, [list[0], list.at(-1), { role: "user", content: "next task" }]);
    kept();
  });

  it("only the words are kept, and they are the same each time", async () => {
    const { openai } = await worked();
    const said = [
      { role: "user", content: "next task" },
      { role: "assistant", content: "Done." },
    ];
    const list: unknown[] = [{ role: "user", content: "go" }, said[1]];
    for (let n = 0; n < 4; n++) {
      await ask(openai, [...list, said[0]]);
      list.push(...said);
      kept();
      const { length } = scene.rewind.thread("t1").checkpoints();
      expect(length).toBe(3 + n);
    }
  });

  it("a window of the newest words, which are the same each time", async () => {
    const { openai } = await worked();
    const said = [
      { role: "assistant", content: "Done." },
      { role: "user", content: "next task" },
    ];
    for (let n = 0; n < 3; n++) {
      await ask(openai, said);
      kept();
      expect(scene.rewind.thread("t1").checkpoints()).toHaveLength(3 + n);
    }
  });

  it.each([false, true])("a finished run begun again with the same words, in a new process: %s", async (reopens) => {
    const { openai } = await worked();
    if (reopens) await scene.reopen();
    const again = reopens ? client(scene) : openai;
    await ask(again, [{ role: "user", content: "go" }]);
    expect(scene.server.requests.at(-1)?.messages).toEqual([{ role: "user", content: "go" }]);
    kept();
    expect(scene.rewind.thread("t1").checkpoints()).toHaveLength(3);
    await scene.rewind.thread("t1").rewind({ to: "c1" });
    expect(scene.files()).toEqual(["work.txt"]);
  });

  it("a whole conversation that became one summary: what was learned is told once, in front", async () => {
    const { openai } = await afterRewind();
    const before = scene.files();
    const summary = { role: "user", content: "Summary of all. again" };
    for (const list of [
      [summary],
      [summary, { role: "assistant", content: "ok" }, { role: "user", content: "next task" }],
    ]) {
      await ask(openai, list);
      expect(occurrences(lastText(), "bad.txt was wrong; write better.txt")).toBe(1);
      expect(lastText().indexOf("bad.txt was wrong")).toBeLessThan(lastText().indexOf("Summary of all"));
      expect(scene.files()).toEqual(before);
    }
  });

  it("the last message, edited and sent again", async () => {
    const { openai, list } = await worked();
    await ask(openai, [...list, { role: "user", content: "next task" }]);
    await ask(openai, [...list, { role: "user", content: "next task, please" }]);
    kept();
  });
});

it("a list that goes back takes what the agent did back, and keeps what a person did", async () => {
  const two: Script = (_request, all) => {
    if (all.includes("wrote two")) return { content: "both" };
    return all.includes("wrote one") && !all.includes("more")
      ? { content: "one" }
      : calls(write(all.includes("wrote one") ? "two" : "one", "x"));
  };
  scene = await openScene(two);
  const openai = client(scene);
  const list: ChatCompletionMessageParam[] = [];
  await chatLoop(openai, writesFiles(scene), "go", list);
  const { length } = list;
  await chatLoop(openai, writesFiles(scene), "more", list);
  writeFileSync(join(scene.workspace, "human"), "x");
  expect(scene.files()).toEqual(["human", "one", "two"]);
  await ask(openai, [...list.slice(0, length), { role: "user", content: "something else" }]);
  expect(scene.files()).toEqual(["human", "one"]);
});

describe("a rewind through the caller's compaction", () => {
  it("brings back the messages of that moment, which the caller's list has lost", async () => {
    const script: Script = (_request, all) => {
      if (all.includes("You are back at")) return { content: "back with all" };
      if (all.includes("Checkpoints, newest first")) {
        return calls(call("rewind", { checkpoint: idBefore(all, "two.txt"), lesson: "two was wrong" }));
      }
      if (all.includes("look back")) return calls(call("list_checkpoints", {}));
      if (all.includes("wrote two.txt")) return { content: "both written" };
      if (all.includes("wrote one.txt")) return calls(write("two.txt", "2"));
      return calls(write("one.txt", "1"));
    };
    scene = await openScene(script);
    const openai = client(scene);
    const list: ChatCompletionMessageParam[] = [];
    await chatLoop(openai, writesFiles(scene), "go", list);
    const compacted = [
      { role: "user", content: "Summary: one.txt and two.txt are written." },
      list.at(-1),
      { role: "user", content: "look back" },
    ];
    expect((await ask(openai, compacted))?.content).toBe("back with all");
    expect(scene.files()).toEqual(["one.txt"]);
    expect(lastText()).toContain("wrote one.txt");
    expect(lastText()).not.toContain("wrote two.txt");
    expect(lastText()).toContain("look back");
  });
});

it("a client with other options knows its conversation, and says when the workspace is closed", async () => {
  scene = await openScene(mainScript());
  const openai = client(scene).withOptions({ timeout: 10_000 }) as Client;
  expect(await chatLoop(openai, writesFiles(scene), "go")).toBe("all done");
  const resumed: ChatCompletionMessageParam[] = await openai.rewind.resume();
  expect(resumed.at(0)).toEqual({ role: "user", content: "go" });
  await scene.rewind.close();
  await expect(ask(openai, [{ role: "user", content: "go" }])).rejects.toMatchObject({ code: "CLOSED", status: 400 });
  await scene.reopen();
});

describe("requests that are no single turn", () => {
  it("several choices are refused with a reason", async () => {
    scene = await openScene(mainScript());
    const asked = client(scene).chat.completions.create({
      model: "scripted",
      n: 2,
      messages: [{ role: "user", content: "go" }],
      tools: chatTools,
    });
    await expect(asked).rejects.toThrow(/asks for several replies/);
    expect(scene.server.requests).toEqual([]);
  });

  it("a tool of the caller with a name of ours is refused before anything is asked", async () => {
    scene = await openScene(mainScript());
    const openai = client(scene);
    const parameters = { type: "object", properties: {} };
    const chat = openai.chat.completions.create({
      model: "scripted",
      messages: [{ role: "user", content: "go" }],
      tools: [{ type: "function", function: { name: "rewind", parameters } }],
    });
    await expect(chat).rejects.toThrow(/called "rewind"/);
    const response = openai.responses.create({
      model: "scripted",
      input: "go",
      tools: [{ type: "function", name: "list_checkpoints", parameters, strict: false }],
    });
    await expect(response).rejects.toThrow(/called "list_checkpoints"/);
    expect(scene.server.requests).toEqual([]);
  });

  it("two requests at once wait for each other", async () => {
    scene = await openScene(() => ({ content: "yes" }), { latencyMs: 50 });
    const openai = client(scene);
    const one = [{ role: "user", content: "one" }];
    const replies = await Promise.all([ask(openai, one), ask(openai, one)]);
    expect(replies.map((reply) => reply?.content)).toEqual(["yes", "yes"]);
    expect(scene.rewind.thread("t1").checkpoints()).toHaveLength(1);
  });

  it("the SDK's retry of a failed request makes no second checkpoint", async () => {
    let failed = false;
    scene = await openScene(() => {
      if (failed) return { content: "yes" };
      failed = true;
      throw new Error("out of order");
    });
    const { withRewind } = await import("agentrewind/openai");
    const openai = withRewind(
      new OpenAI({ apiKey: "none", baseURL: scene.server.baseUrl, maxRetries: 2 }),
      scene.rewind,
      {
        thread: "t1",
      },
    );
    expect((await ask(openai as Client, [{ role: "user", content: "one" }]))?.content).toBe("yes");
    expect(scene.rewind.thread("t1").checkpoints()).toHaveLength(1);
    (scene.server.errors as string[]).length = 0;
  });
});

describe("a rewind from outside", () => {
  it.each([
    ["chat", chatLoop],
    ["responses", responsesLoop],
  ])(
    "while a tool runs: its result is dropped, and the model goes on from the restored context (%s)",
    async (_name, loop) => {
      scene = await openScene((_request, all) => {
        if (all.includes("You are back at")) return { content: "I see" };
        if (all.includes("wrote two.txt")) return { content: "not asked again" };
        return calls(write(all.includes("wrote one.txt") ? "two.txt" : "one.txt", "x"));
      });
      const openai = client(scene);
      const said = await loop(
        openai,
        async (_name, { path = "" }) => {
          writeFileSync(join(scene.workspace, path), "x");
          if (path === "two.txt") await scene.rewind.thread("t1").rewind({ to: "c0" });
          return `wrote ${path}`;
        },
        "go",
      );
      expect(said).toBe("I see");
      expect(scene.files()).toEqual([]);
      expect(lastText()).not.toContain("wrote one.txt");
    },
  );

  it("while the model answers: the late reply is dropped", async () => {
    scene = await openScene(async (_request, all) => {
      if (all.includes("You are back at")) return { content: "I see" };
      if (!all.includes("wrote one.txt")) return calls(write("one.txt", "x"));
      await scene.rewind.thread("t1").rewind({ to: "c0" });
      return calls(write("late.txt", "late"));
    });
    expect(await chatLoop(client(scene), writesFiles(scene), "go")).toBe("I see");
    expect(scene.files()).toEqual([]);
  });
});

it.each(Object.entries(loops))("our tools beside the caller's in one reply: %s", async (_name, loop) => {
  scene = await openScene((_request, all) => {
    if (all.includes("wrote one.txt"))
      return {
        content:
          all.includes("Checkpoints, newest first") || all.includes("no checkpoints yet")
            ? "saw both"
            : "lost the list",
      };
    return calls(call("list_checkpoints", {}), write("one.txt", "1"), call("checkpoint", { label: "begun" }));
  });
  const list: unknown[] = [];
  expect(await loop(client(scene), writesFiles(scene), "go", list)).toBe("saw both");
  expect(JSON.stringify(list)).not.toContain("list_checkpoints");
  expect(scene.rewind.thread("t1").get("c0").label).toBe("begun");
});
