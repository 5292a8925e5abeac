// What the model may ask for, and what it is told when it may not; nothing changes then, and the loop goes on.
import { rmSync } from "node:fs";
import { tool } from "@langchain/core/tools";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  call,
  calls,
  fileTool,
  idBefore,
  lastText,
  makeAgent,
  occurrences,
  openScene,
  run,
  type Scene,
  type Script,
  start,
  texts,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const thread = () => scene.rewind.thread(scene.rewind.threads()[0] ?? "");
const rewindTo = (checkpoint: unknown, lesson: unknown = "learnt") => call("rewind", { checkpoint, lesson });

/** a.txt, then the given call, then an answer. */
const afterA =
  (...then: ReturnType<typeof call>[]): Script =>
  (_request, all) => {
    if (all.includes("You are back") || all.includes("Not done")) return { content: "end" };
    return calls(...(all.includes("wrote a.txt") ? then : [write("a.txt", "x")]));
  };

describe("refused, with what to do", () => {
  test.each([
    ["an unknown id", rewindTo("c77"), /There is no checkpoint c77 in this thread. Use one of c1, c0/],
    ["no id at all", rewindTo("the beginning"), /"the beginning" is not the id of a checkpoint. Ids look like c7/],
    ["an empty lesson", rewindTo("c0", "  "), /The lesson is empty. Say what was tried/],
    ["a missing lesson", call("rewind", { checkpoint: "c0" }), /needs a checkpoint and a lesson, both as text/],
    ["wrong types", call("rewind", { checkpoint: 0, lesson: ["x"] }), /needs a checkpoint and a lesson, both as text/],
    ["nothing", call("rewind", {}), /For example \{"checkpoint": "c7"/],
    ["the present moment", rewindTo("c1"), /You are already at c1: nothing has been done since/],
  ])("%s", async (_, given, message) => {
    for (const siblings of [[], [write("sibling.txt", "x")]]) {
      scene = await openScene(afterA(given, ...siblings));
      const state = await run(makeAgent(scene), start);
      expect(lastText(state)).toBe("end");
      expect(texts(state).join("\n")).toMatch(message);
      expect(scene.files()).toEqual(["a.txt"]);
      expect(thread().lessons()).toEqual([]);
      expect(thread().epoch).toBe(0);
      if (siblings.length === 0) await scene.close();
    }
  });

  test.each(["c0", "C0", "0", " c0 "])("%j is understood", async (id) => {
    scene = await openScene(afterA(rewindTo(id)));
    expect(lastText(await run(makeAgent(scene), start))).toBe("end");
    expect(scene.files()).toEqual([]);
  });

  test("of two rewinds in one message the first valid one is done", async () => {
    scene = await openScene(afterA(rewindTo("c9"), rewindTo("c0", "first"), rewindTo("c0", "second")));
    expect(lastText(await run(makeAgent(scene), start))).toBe("end");
    expect(
      thread()
        .lessons()
        .map((one) => one.text),
    ).toEqual(["first"]);
  });

  test("case 79: the same checkpoint again and again ends with the budget, and the run goes on", async () => {
    let tries = 0;
    scene = await openScene((_request, all) => {
      if (all.includes("Not done")) return { content: "I give up" };
      if (all.includes("wrote a.txt")) return calls(rewindTo("c0", `lesson ${++tries}`));
      return calls(write("a.txt", "x"));
    });
    const state = await run(makeAgent(scene), start);
    expect(lastText(state)).toBe("I give up");
    const all = texts(state).join("\n");
    expect(all).toContain(
      "You have returned to c0 3 times already. Go on from here, or rewind to a checkpoint before c0",
    );
    expect(all).toMatch(/newest first:\n1\. lesson 3\n2\. lesson 2\n3\. lesson 1\n/);
    expect(occurrences(all, "lesson 1")).toBe(1);
    expect(thread().lessons()).toHaveLength(3);
  });

  test("all rewinds of the thread are used", async () => {
    let tries = 0;
    scene = await openScene(
      (_request, all) => {
        if (all.includes("Not done")) return { content: "I give up" };
        return calls(all.includes("wrote a.txt") ? rewindTo("c0", `${++tries}`) : write("a.txt", "x"));
      },
      { budget: { rewinds: 1 } },
    );
    const state = await run(makeAgent(scene), start);
    expect(texts(state).join("\n")).toContain("All 1 rewinds of this thread are used. Go on from here");
    expect(scene.files()).toEqual(["a.txt"]);
  });
});

describe("one after another", () => {
  test("older, then newer; then to a checkpoint of an abandoned branch", async () => {
    scene = await openScene((_request, all) => {
      const back = all.match(/You are back at (c\d+)/g)?.at(-1);
      const names = scene.files();
      if (back === undefined) {
        if (!names.includes("a.txt")) return calls(write("a.txt", "x"));
        if (!names.includes("b.txt")) return calls(write("b.txt", "x"));
        return calls(rewindTo("c0", "one"));
      }
      if (back.endsWith("c0")) {
        if (!names.includes("c.txt")) return calls(write("c.txt", "x"));
        if (!names.includes("d.txt")) return calls(write("d.txt", "x"));
        return all.includes("Checkpoints, newest first")
          ? calls(rewindTo(idBefore(all, '"path":"d.txt"'), "two"))
          : calls(call("list_checkpoints", {}));
      }
      if (names.includes("c.txt")) return calls(write("e.txt", "x"), rewindTo("c2", "three"));
      return { content: "end" };
    });
    const state = await run(makeAgent(scene), start, { recursionLimit: 40 });
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual(["a.txt", "b.txt"]);
    const all = texts(state).join("\n");
    expect(all).toContain("wrote b.txt");
    expect(all).not.toContain("wrote c.txt");
    expect(all).toMatch(/1\. three\n2\. two\n3\. one/);
  });

  test("case 78: after a rewind a task of three calls runs to its end, and nobody asks for a rewind", async () => {
    scene = await openScene((_request, all) => {
      if (!all.includes("You are back")) return afterA(rewindTo("c0"))(_request, all);
      expect(all.slice(all.indexOf("You are back"), all.indexOf("[{"))).not.toMatch(
        /call rewind|use rewind|rewind again/i,
      );
      const next = [1, 2, 3].find((n) => !all.includes(`wrote ${n}.txt`));
      return next === undefined ? { content: "end" } : calls(write(`${next}.txt`, "x"));
    });
    expect(lastText(await run(makeAgent(scene), start))).toBe("end");
    expect(scene.files()).toEqual(["1.txt", "2.txt", "3.txt"]);
  });

  test("the agent names a moment and finds it in the list", async () => {
    scene = await openScene((_request, all) => {
      if (all.includes("You are back")) return { content: "end" };
      if (all.includes("Checkpoints, newest first")) return calls(rewindTo(idBefore(all, '"all well"'), "x"));
      if (all.includes("wrote b.txt")) return calls(call("list_checkpoints", {}));
      if (all.includes("is now called")) return calls(write("b.txt", "x"));
      return calls(all.includes("wrote a.txt") ? call("checkpoint", { label: "all well" }) : write("a.txt", "x"));
    });
    expect(lastText(await run(makeAgent(scene), start))).toBe("end");
    expect(scene.files()).toEqual(["a.txt"]);
  });
});

describe("the environment fails", () => {
  const shell = () =>
    tool(
      ({ what }: { what: string }) => {
        rmSync(scene.workspace, { recursive: true });
        return `did ${what}`;
      },
      { name: "shell", description: "s", schema: z.object({ what: z.string() }) },
    );

  test("the agent removes its own workspace: the turn goes on, and a rewind brings it back", async () => {
    scene = await openScene((_request, all) => {
      if (all.includes("You are back")) return { content: "end" };
      if (all.includes("did remove all")) return calls(rewindTo("c1", "do not remove everything"));
      return calls(all.includes("wrote a.txt") ? call("shell", { what: "remove all" }) : write("a.txt", "x"));
    });
    const state = await run(makeAgent(scene, { tools: [fileTool(scene), shell()] }), start);
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual(["a.txt"]);
    const lost = thread()
      .checkpoints({ all: true })
      .find((one) => one.state === "not-restorable");
    expect(lost?.id).toBe("c2");
  });

  test("a restore that fails: an error result, everything as before, and the loop goes on", async () => {
    scene = await openScene((_request, all) =>
      all.includes("Not done") ? { content: "end" } : afterA(rewindTo("c0"))(_request, all),
    );
    const { environment } = scene.rewind;
    const { restore } = environment;
    let failures = 0;
    environment.restore = async (...given) => {
      if (failures++ === 0) throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
      return restore.apply(environment, given);
    };
    const state = await run(makeAgent(scene), start);
    expect(lastText(state)).toBe("end");
    expect(texts(state).join("\n")).toMatch(/Not done: The rewind failed: EIO/);
    expect(scene.files()).toEqual(["a.txt"]);
    expect(thread().lessons()).toEqual([]);
    expect(thread().head).toBe("c2");
  });
});

test("markers are the same text in every request, and never stored", async () => {
  scene = await openScene((request, all) => {
    if (all.includes("You are back")) {
      return all.includes("wrote c.txt") ? { content: "end" } : calls(write("c.txt", "x"));
    }
    if (all.includes("wrote b.txt")) {
      expect(all).toContain("[checkpoint c2]");
      return calls(rewindTo("c1", "no b"));
    }
    expect(request.messages.at(-1)?.content).toMatch(/\[checkpoint c\d+\]$/);
    return calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt", "x"));
  });
  const state = await run(makeAgent(scene, { options: { markers: true } }), start);
  expect(lastText(state)).toBe("end");
  expect(texts(state).join("\n")).not.toContain("[checkpoint");
  const [first, second, third, fourth] = scene.server.requests.map((request) => JSON.stringify(request.messages));
  expect(second?.startsWith((first ?? "").slice(0, -1))).toBe(true);
  expect(third?.startsWith((second ?? "").slice(0, -1))).toBe(true);
  expect(fourth?.startsWith((second ?? "").slice(0, -1))).toBe(true);
});
