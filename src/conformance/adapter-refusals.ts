// What the model may not do: it is told what to do instead, nothing changes, and the run goes on.
import assert from "node:assert/strict";
import { type AdapterCheck, call, calls, count, rewindTo, write } from "./adapter-scene.ts";

const refusals: readonly (readonly [string, ReturnType<typeof call>, RegExp])[] = [
  ["an unknown id", rewindTo("c77"), /There is no checkpoint c77 in this thread\. Use one of c1, c0/],
  ["no id", rewindTo("the beginning"), /is not the id of a checkpoint/],
  ["an empty lesson", rewindTo("c0", "  "), /The lesson is empty/],
  ["arguments of the wrong kind", call("rewind", { checkpoint: 0 }), /needs a checkpoint and a lesson, both as text/],
  ["the present moment", rewindTo("c1"), /You are already at c1/],
];

export const refusalChecks: readonly AdapterCheck[] = [
  ...refusals.flatMap(([what, rewind, message]) =>
    [false, true].map(
      (together): AdapterCheck => ({
        name: `refused: ${what}${together ? ", together with another call" : ""}`,
        script: (all) => {
          if (all.includes("Not done")) return { content: "I see" };
          if (!all.includes("wrote a.txt")) return calls(write("a.txt"));
          return calls(...(together ? [write("sibling.txt"), rewind] : [rewind]));
        },
        async check(scene, run) {
          assert.equal(await run.say("go"), "I see");
          const last = scene.since("Not done").at(-1) as string;
          assert.match(last, message);
          assert.equal(count(last, "sent together with a rewind that was refused"), together ? 1 : 0);
          assert.deepEqual(scene.written, ["a.txt"]);
          assert.deepEqual(scene.files(), ["a.txt"]);
          assert.deepEqual(scene.session().lessons(), []);
          assert.equal(scene.session().epoch, 0);
        },
      }),
    ),
  ),
  {
    name: "case 79: the same rewind again and again ends with the budget, and each lesson is told once",
    script: (all) => {
      if (all.includes("Not done")) return { content: "I give up" };
      const next = new Set(all.match(/\btry \d+\./g)).size + 1;
      return calls(all.includes("wrote a.txt") ? rewindTo("c0", `try ${next}.`) : write("a.txt"));
    },
    options: { budget: { perCheckpoint: 2 } },
    async check(scene, run) {
      assert.equal(await run.say("go"), "I give up");
      const last = scene.since("Not done").at(-1) as string;
      assert.match(last, /You have returned to c0 2 times already/);
      assert.ok(last.includes("wrote a.txt"), "the attempt that was not taken back is there");
      for (const lesson of ["1. try 2.", "2. try 1."]) assert.equal(count(last, lesson), 1);
      assert.deepEqual(scene.files(), ["a.txt"]);
    },
  },
];
