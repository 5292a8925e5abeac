// Somebody else rewinds while the agent runs: what was issued before arrives too late (the epoch fence).
import assert from "node:assert/strict";
import { AsyncResource } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type AdapterCheck, calls, write } from "./adapter-scene.ts";

const back = "You are back at";

export const outsideChecks: readonly AdapterCheck[] = [
  {
    name: "a rewind from outside while the model answers: the late reply is dropped",
    script: async (all, _request, scene) => {
      if (all.includes(back)) return { content: "from c0" };
      if (!all.includes("wrote a.txt")) return calls(write("a.txt"));
      await scene.session().rewind({ to: "c0" });
      return calls(write("late.txt"));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "from c0");
      assert.deepEqual(scene.written, ["a.txt"]);
      assert.deepEqual(scene.files(), []);
      for (const all of scene.since(back)) assert.ok(!all.includes("wrote a.txt"));
    },
  },
  {
    name: "a rewind from outside that was asked for while a tool ran: its result is in no later request",
    script: (all) => {
      if (all.includes(back)) return { content: "from c0" };
      return all.includes("wrote b.txt")
        ? { content: "too far" }
        : calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt"));
    },
    async check(scene, run) {
      // As somebody outside of the tool asks, also while it runs: it waits for the tool's end.
      const rewind = AsyncResource.bind(() => scene.session().rewind({ to: "c0" }));
      let asked: Promise<unknown> | undefined;
      scene.onWrite = async (path) => {
        if (path !== "b.txt") return;
        asked = rewind();
        // An adapter that is not one yet may have no thread: that fails below.
        asked.catch(() => {});
        await sleep(20);
      };
      const said = await run.say("go");
      await asked;
      assert.ok(said === "from c0" || (await run.say("go on")) === "from c0");
      assert.deepEqual(scene.written, ["a.txt", "b.txt"]);
      assert.deepEqual(scene.files(), []);
      assert.ok(!(scene.since(back).at(-1) as string).includes("wrote b.txt"));
    },
  },
  {
    name: "a rewind between two runs: the next one goes on from there",
    script: (all) => {
      if (all.includes(back)) return { content: all.includes("wrote a.txt") ? "leaked" : "from c0" };
      return all.includes("wrote a.txt") ? { content: "written" } : calls(write("a.txt"));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "written");
      await scene.session().rewind({ to: "c0" });
      assert.deepEqual(scene.files(), []);
      assert.equal(await run.say("go on"), "from c0");
      assert.ok((scene.since(back).at(-1) as string).includes("go on"));
    },
  },
  {
    name: "case 74: only the files are taken back: the conversation stays, and the model is told",
    script: (all) => {
      if (!all.includes("go on")) return all.includes("wrote a.txt") ? { content: "written" } : calls(write("a.txt"));
      return { content: all.includes("The files are back at c0") && all.includes("wrote a.txt") ? "told" : "not told" };
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "written");
      await scene.session().rewind({ to: "c0", scope: "environment" });
      assert.deepEqual(scene.files(), []);
      assert.equal(await run.say("go on"), "told");
      assert.deepEqual(scene.files(), []);
    },
  },
  {
    name: "case 75: only the conversation is taken back: no file changes, and the model is told",
    script: (all) => {
      if (!all.includes("go on")) return all.includes("wrote a.txt") ? { content: "written" } : calls(write("a.txt"));
      return {
        content: all.includes("The conversation is back at c0") && !all.includes("wrote a.txt") ? "told" : "not told",
      };
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "written");
      const before = scene.times();
      await scene.session().rewind({ to: "c0", scope: "context" });
      assert.equal(await run.say("go on"), "told");
      assert.deepEqual(scene.times(), before);
    },
  },
  {
    name: "case 67: a run that ends in the middle of a call: the next message is answered, and a rewind reaches every point",
    script: (all) => {
      if (all.includes(back)) return { content: "back" };
      if (all.includes("never mind")) return { content: "as you like" };
      if (all.includes("the line was cut") || all.includes("error")) return { content: "I stop" };
      return calls(
        write(all.includes("wrote a.txt") ? "broken.txt" : "a.txt"),
        ...(all.includes("wrote a.txt") ? [write("c.txt")] : []),
      );
    },
    async check(scene, run) {
      scene.onWrite = (path) => {
        if (path === "broken.txt") throw new Error("the line was cut");
      };
      // Some loops end with what a tool throws, others tell the model.
      await run.say("go").catch(() => {});
      assert.equal(await run.say("never mind"), "as you like");
      await scene.session().rewind({ to: "c0" });
      assert.deepEqual(scene.files(), []);
      assert.equal(await run.say("and now"), "back");
    },
  },
  {
    name: "an undo from outside: conversation and files are those before the rewind",
    script: (all) => {
      if (all.includes("again")) return { content: all.includes("wrote a.txt") ? "as before" : "lost" };
      return all.includes("wrote a.txt") ? { content: "written" } : calls(write("a.txt"));
    },
    async check(scene, run) {
      assert.equal(await run.say("go"), "written");
      await scene.session().rewind({ to: "c0" });
      await scene.session().undo();
      assert.deepEqual(scene.files(), ["a.txt"]);
      assert.equal(await run.say("again"), "as before");
    },
  },
];
