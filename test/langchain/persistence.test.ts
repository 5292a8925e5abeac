// With LangGraph's checkpointers, across invokes, restarts, threads and runs.
import { join } from "node:path";
import { MemorySaver } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { afterEach, describe, expect, test } from "vitest";
import {
  allText,
  call,
  calls,
  history,
  idBefore,
  lastText,
  mainScript,
  makeAgent,
  occurrences,
  onThread,
  openScene,
  run,
  type Scene,
  type Script,
  start,
  stored,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const sqlite = () => SqliteSaver.fromConnString(join(scene.store, "langgraph.db"));

describe.each(["memory", "sqlite"] as const)("%s", (saver) => {
  test.each(["sync", "async", "exit"] as const)("durability %s", async (durability) => {
    scene = await openScene(mainScript());
    const checkpointer = saver === "memory" ? new MemorySaver() : sqlite();
    const agent = makeAgent(scene, { checkpointer });
    const state = await run(agent, start, { ...onThread("t"), durability });
    expect(lastText(state)).toBe("all done");
    expect(scene.files()).toEqual(["better.txt", "good.txt"]);
    expect(texts((await stored(agent, onThread("t"))).values)).toEqual(texts(state));
    if (durability === "sync") {
      const sizes = (await history(agent, onThread("t"))).map((one) => one.values.messages?.length ?? 0).reverse();
      expect(sizes).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 5, 6, 7]);
    }
  });
});

/** First invoke: one file and an answer. Second: goes back to before the first file. */
const twoInvokes: Script = (request, all) => {
  if (all.includes("Not done:")) return { content: "refused" };
  if (all.includes("You are back at")) {
    return all.includes("wrote two.txt") ? { content: "second done" } : calls(write("two.txt", "2"));
  }
  if (all.includes("Checkpoints, newest first")) {
    return calls(call("rewind", { checkpoint: idBefore(all, '"path":"one.txt"'), lesson: "one.txt is not wanted" }));
  }
  const humans = request.messages.filter((message) => message.role === "user").length;
  if (humans === 2) return calls(call("list_checkpoints", {}));
  return all.includes("wrote one.txt") ? { content: "I wrote one.txt for you" } : calls(write("one.txt", "1"));
};

describe("a second invoke rewinds into the first", () => {
  test("the person's newer message is kept behind the restored ones, before what is told", async () => {
    scene = await openScene(twoInvokes);
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    const state = await run(agent, user("make two.txt instead"), onThread("t"));
    expect(lastText(state)).toBe("second done");
    expect(scene.files()).toEqual(["two.txt"]);
    const [first, second, told] = texts(state);
    expect([first, second]).toEqual(["go", "make two.txt instead"]);
    expect(told).toContain("One message that the person sent after that point was kept");
    expect(told).toContain('you told the person: "I wrote one.txt for you"');
    expect(occurrences(texts(state).join("\n"), "make two.txt instead")).toBe(1);
  });

  test("several kept messages stay in order, also over a second rewind", async () => {
    let rewinds = 0;
    scene = await openScene((request, all) => {
      const humans = request.messages.filter((message) => message.role === "user").map((one) => one.content);
      const back = humans.filter((one) => String(one).includes("You are back at")).length;
      if (all.includes("wrote last.txt")) return { content: "end" };
      if (back > 0 && rewinds === 2) return calls(write("last.txt", "x"));
      if (back > 0 && !all.includes("wrote again.txt")) return calls(write("again.txt", "x"));
      if (humans.includes("three")) {
        if (!all.includes("Checkpoints, newest first")) return calls(call("list_checkpoints", {}));
        rewinds++;
        return calls(call("rewind", { checkpoint: "c0", lesson: `lesson ${rewinds}` }));
      }
      return all.includes(`wrote ${humans.length}.txt`)
        ? { content: `answer ${humans.length}` }
        : calls(write(`${humans.length}.txt`, "x"));
    });
    const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
    await run(agent, user("one"), onThread("t"));
    await run(agent, user("two"), onThread("t"));
    const state = await run(agent, user("three"), onThread("t"));
    expect(rewinds).toBe(2);
    expect(texts(state).slice(0, 3)).toEqual(["one", "two", "three"]);
    const told = texts(state)[3] ?? "";
    expect(told).toMatch(/newest first:\n1\. lesson 2\n2\. lesson 1/);
    expect(occurrences(texts(state).join("\n"), "lesson 1")).toBe(1);
    expect(scene.files()).toEqual(["last.txt"]);
  });

  test('humanMessages "refuse": nothing is changed', async () => {
    scene = await openScene(twoInvokes);
    const agent = makeAgent(scene, { checkpointer: new MemorySaver(), options: { humanMessages: "refuse" } });
    await run(agent, start, onThread("t"));
    const state = await run(agent, user("make two.txt instead"), onThread("t"));
    expect(lastText(state)).toBe("refused");
    expect(texts(state).join("\n")).toContain("lies before a message that the person sent. Choose a checkpoint after");
    expect(scene.files()).toEqual(["one.txt"]);
    expect(scene.rewind.thread("t").lessons()).toEqual([]);
  });

  test('humanMessages "drop"', async () => {
    scene = await openScene(twoInvokes);
    const agent = makeAgent(scene, { checkpointer: new MemorySaver(), options: { humanMessages: "drop" } });
    await run(agent, start, onThread("t"));
    const state = await run(agent, user("make two.txt instead"), onThread("t"));
    expect(lastText(state)).toBe("second done");
    expect(texts(state)).not.toContain("make two.txt instead");
    expect(texts(state)[1]).not.toContain("was kept");
  });
});

test("a new agent over a reopened store continues from the rewound pair", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("a third one")) {
      expect(all).not.toContain("wrote bad.txt");
      expect(occurrences(all, "bad.txt was wrong; write better.txt")).toBe(1);
      return all.includes("wrote third.txt") ? { content: "third" } : calls(write("third.txt", "3"));
    }
    return mainScript()(_request, all);
  });
  await run(makeAgent(scene, { checkpointer: sqlite() }), start, onThread("t"));
  await scene.reopen();
  const state = await run(makeAgent(scene, { checkpointer: sqlite() }), user("a third one"), onThread("t"));
  expect(lastText(state)).toBe("third");
  expect(scene.files()).toEqual(["better.txt", "good.txt", "third.txt"]);
  const line = scene.rewind.thread("t").checkpoints();
  expect(line.map((one) => one.id)).toEqual(["c0", "c1", "c4", "c5", "c6", "c7"]);
});

test("two threads through one instance keep their checkpoints apart; one does not undo the other's work", async () => {
  scene = await openScene((request, all) => {
    const who = all.includes("I am A") ? "a" : "b";
    if (all.includes("Not done:") || all.includes("You are back")) return { content: "end" };
    if (all.includes(`wrote ${who}-2.txt`)) {
      expect(request.messages.length).toBe(5);
      return calls(call("rewind", { checkpoint: "c0", lesson: "no" }));
    }
    return calls(write(`${who}-${all.includes(`wrote ${who}-1.txt`) ? 2 : 1}.txt`, who));
  });
  const agent = makeAgent(scene, { checkpointer: new MemorySaver() });
  const [a, b] = await Promise.all([
    run(agent, user("I am A"), onThread("a")),
    run(agent, user("I am B"), onThread("b")),
  ]);
  expect([lastText(a), lastText(b)]).toEqual(["end", "end"]);
  expect(scene.rewind.threads().sort()).toEqual(["a", "b"]);
  const all = [...texts(a), ...texts(b)].join("\n");
  expect(all).toContain("in the same workspace");
  expect(all).toContain('Not done: Rewinding to c0 would take back work of "');
});

describe("without a checkpointer", () => {
  test("each run is a thread, also with the same first message", async () => {
    scene = await openScene(mainScript());
    const agent = makeAgent(scene);
    for (const _ of [1, 2]) {
      const state = await run(agent, user("go", "same-id"));
      expect(lastText(state)).toBe("all done");
      expect(scene.files()).toEqual(["better.txt", "good.txt"]);
    }
    expect(scene.rewind.threads()).toHaveLength(2);
    for (const name of scene.rewind.threads()) {
      expect(scene.rewind.thread(name).checkpoints()[0]?.id).toBe("c0");
      expect(scene.rewind.thread(name).lessons()).toHaveLength(1);
    }
  });

  test("a rewind to the first boundary stays in the run's thread", async () => {
    scene = await openScene((_request, all) => {
      if (all.includes("You are back at c0")) {
        return all.includes("wrote b.txt") ? { content: "end" } : calls(write("b.txt", "x"));
      }
      return all.includes("wrote a.txt")
        ? calls(call("rewind", { checkpoint: "c0", lesson: "not a" }))
        : calls(write("a.txt", "x"));
    });
    expect(lastText(await run(makeAgent(scene), user("go", "m")))).toBe("end");
    expect(scene.rewind.threads()).toHaveLength(1);
    expect(scene.files()).toEqual(["b.txt"]);
  });

  test("a thread named in the options is used for every run", async () => {
    scene = await openScene((_request, all) =>
      all.includes("wrote a.txt") ? { content: "end" } : calls(write("a.txt", "x")),
    );
    const agent = makeAgent(scene, { options: { thread: "main" } });
    await run(agent, start);
    await run(agent, start);
    expect(scene.rewind.threads()).toEqual(["main"]);
    expect(allText(scene.server.requests[2] as never)).toBe("go");
  });
});
