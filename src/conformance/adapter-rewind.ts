// The agent takes back a wrong step, and the same run goes on.
import assert from "node:assert/strict";
import {
  type AdapterCheck,
  call,
  calls,
  count,
  idBefore,
  list,
  rewindTo,
  type Script,
  write,
} from "./adapter-scene.ts";

const back = "You are back at";
const listed = "Checkpoints, newest first";

/** Writes good.txt and bad.txt, lists, sends `reply` (a rewind to before bad.txt among others), writes better.txt. */
const main =
  (reply: (rewind: ReturnType<typeof rewindTo>) => ReturnType<typeof calls> = (rewind) => calls(rewind)): Script =>
  (all) => {
    if (all.includes(back))
      return all.includes("wrote better.txt") ? { content: "all done" } : calls(write("better.txt"));
    if (all.includes(listed)) return reply(rewindTo(idBefore(all, "bad.txt"), "never write bad.txt"));
    if (all.includes("wrote bad.txt")) return calls(list());
    return calls(write(all.includes("wrote good.txt") ? "bad.txt" : "good.txt"));
  };

export const rewindChecks: readonly AdapterCheck[] = [
  {
    name: "a rewind in the run: files and conversation return, and the run goes on",
    script: main(),
    async check(scene, run) {
      assert.equal(await run.say("go"), "all done");
      assert.deepEqual(scene.files(), ["better.txt", "good.txt"]);
      assert.deepEqual(scene.written, ["good.txt", "bad.txt", "better.txt"]);
    },
  },
  {
    name: "what was taken back is in no later request",
    script: main(),
    async check(scene, run) {
      await run.say("go");
      for (const all of scene.since(back)) {
        assert.ok(all.includes("wrote good.txt"), "what came before the target is there");
        assert.ok(!all.includes("wrote bad.txt"), "the abandoned result is gone");
        assert.ok(!all.includes(listed), "the abandoned list is gone");
      }
    },
  },
  {
    name: "the lesson is in every later request, once",
    script: main(),
    async check(scene, run) {
      await run.say("go");
      for (const all of scene.since(back)) assert.equal(count(all, "never write bad.txt"), 1);
      assert.deepEqual(
        scene
          .session()
          .lessons()
          .map(({ text }) => text),
        ["never write bad.txt"],
      );
    },
  },
  ...(["first", "between", "last"] as const).map(
    (place): AdapterCheck => ({
      name: `calls sent together with a rewind do not run: the rewind ${place}`,
      script: main((rewind) => {
        const others = [write("one.txt"), write("two.txt")];
        const at = { first: 0, between: 1, last: 2 }[place];
        return calls(...others.slice(0, at), rewind, ...others.slice(at));
      }),
      async check(scene, run) {
        assert.equal(await run.say("go"), "all done");
        assert.deepEqual(scene.written, ["good.txt", "bad.txt", "better.txt"]);
        assert.deepEqual(scene.files(), ["better.txt", "good.txt"]);
      },
    }),
  ),
  {
    name: "of two rewinds in one reply the first valid one is done",
    script: main((rewind) => calls(rewindTo("c99"), rewind, rewindTo("c0", "the second"))),
    async check(scene, run) {
      assert.equal(await run.say("go"), "all done");
      assert.deepEqual(
        scene
          .session()
          .lessons()
          .map(({ text }) => text),
        ["never write bad.txt"],
      );
    },
  },
  {
    name: "to the first decision of all",
    script: (all) => {
      if (all.includes(back)) return { content: "from the beginning" };
      return calls(all.includes("wrote a.txt") ? rewindTo("c0") : write("a.txt"));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "from the beginning");
      assert.ok((scene.since(back).at(-1) as string).split("\n").includes("go"), "what the person asked is there");
      assert.deepEqual(scene.files(), []);
    },
  },
  {
    name: "twice, the second time to an older moment: both lessons are told",
    script: (all) => {
      if (all.includes("lesson two")) return { content: "wiser" };
      if (all.includes("lesson one")) return calls(rewindTo("c0", "lesson two"));
      if (all.includes("wrote b.txt")) return calls(rewindTo("c1", "lesson one"));
      return calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt"));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "wiser");
      assert.deepEqual(scene.files(), []);
      const last = scene.since("lesson two").at(-1) as string;
      assert.equal(count(last, "lesson one"), 1);
      assert.ok(!last.includes("wrote a.txt"));
    },
  },
  {
    name: "case 78: three calls after a rewind all run",
    script: (all) => {
      if (!all.includes(back)) return calls(all.includes("wrote x.txt") ? rewindTo("c0") : write("x.txt"));
      const next = ["1.txt", "2.txt", "3.txt"].find((name) => !all.includes(`wrote ${name}`));
      return next === undefined ? { content: "three" } : calls(write(next));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "three");
      assert.deepEqual(scene.files(), ["1.txt", "2.txt", "3.txt"]);
    },
  },
  {
    name: "parallel calls of one reply all run, and a checkpoint lies before all of them",
    script: (all) => {
      if (all.includes(back)) return { content: "none left" };
      return calls(...(all.includes("wrote b.txt") ? [rewindTo("c0")] : [write("a.txt"), write("b.txt")]));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "none left");
      assert.deepEqual([...scene.written].sort(), ["a.txt", "b.txt"]);
      assert.deepEqual(scene.files(), []);
    },
  },
  {
    name: "a later message of the person goes on from the rewound conversation",
    script: (all, request, scene) =>
      all.includes("and now")
        ? { content: all.includes("wrote bad.txt") ? "leaked" : "goes on" }
        : main()(all, request, scene),
    async check(scene, run) {
      await run.say("go");
      assert.equal(await run.say("and now"), "goes on");
      const last = scene.since("and now").at(-1) as string;
      assert.equal(count(last, "never write bad.txt"), 1);
      assert.ok(last.includes("wrote better.txt"));
    },
  },
  {
    name: "a rewind past a later message of the person keeps that message",
    script: (all) => {
      if (all.includes(back)) return { content: all.includes("also do this") ? "kept" : "forgotten" };
      if (all.includes("also do this")) return calls(rewindTo("c0"));
      return all.includes("wrote a.txt") ? { content: "first done" } : calls(write("a.txt"));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "first done");
      assert.equal(await run.say("also do this"), "kept");
      assert.equal(count(scene.since(back).at(-1) as string, "also do this"), 1);
      assert.deepEqual(scene.files(), []);
    },
  },
  {
    name: "a label that the model gives is in the list",
    script: (all) => {
      if (all.includes(listed)) return { content: all.includes('"before the change"') ? "found" : "lost" };
      if (all.includes("is now called")) return calls(list());
      return calls(call("checkpoint", { label: "before the change" }));
    },
    async check(_scene, run) {
      assert.equal(await run.say("go"), "found");
    },
  },
];
