// A dump holds the memory that was written since the one before, whatever is done to memory in between; and every one of them comes back whole.
import { execFileSync } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Checkpoint } from "agentrewind";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mostInChain } from "../../src/environment/sandbox/processes/memory-chain.ts";
import { lacking } from "../capabilities.ts";
import { pythonPath } from "../helpers/python.ts";
import { Exact, type Seen } from "./exact.ts";
import { fixture, Held, needed } from "./held.ts";

const things = [
  "nothing",
  "write one page",
  "write what it holds",
  "give a file's pages back",
  "read a file's page again",
  "let another write",
  "write the first time",
  "write a file's page",
  "read",
  "give pages back",
  "read what was given back",
  "forbid",
  "allow and write",
  "move",
  "put anew",
  "let the kernel write",
  "fork",
  "write behind the fork",
  "end the child",
  "fork and exec",
];

describe.skipIf(lacking(...needed))("memory that was written since the last image", () => {
  let exact: Exact;
  beforeAll(async () => {
    exact = await Exact.open({ network: "own" }, ["memory.py"]);
    await exact.held.sh(`mkfifo asked; ${pythonPath()} memory.py <>asked >/dev/null 2>&1 & true`);
    await ask("nothing");
  });
  afterAll(() => exact.end());

  const ask = (thing: string): Promise<string> =>
    exact.held.sh(`rm -f told; echo "${thing}" >asked; until [ -s told ]; do sleep 0.01; done; cat told`);
  /** Of the image: the one that it was made from. */
  const parent = (seen: Seen): string | undefined => {
    const images = join(exact.held.base, "store", "images");
    const folder = join(images, readdirSync(images)[0] as string, seen.checkpoint.environment.processes as string);
    return readdirSync(folder).includes("parent") ? readlinkSync(join(folder, "parent")) : undefined;
  };

  test("is all that a dump holds, and each state comes back", async () => {
    const seen: Seen[] = [];
    const told: string[] = [];
    for (const thing of things) {
      await ask(thing);
      seen.push(await exact.capture());
      told.push(await ask("digest"));
    }
    const sizes = seen.map(({ checkpoint }) => checkpoint.timings.bytes);
    const parts = seen.filter((one) => parent(one) !== undefined);
    // The first, and every one behind as many as may hang together.
    expect(parts.length).toBe(things.length - Math.ceil(things.length / mostInChain));
    // A child's memory is its own from the first.
    for (const [index, one] of seen.entries())
      if (parts.includes(one) && things[index] !== "fork")
        expect(sizes[index], things[index]).toBeLessThan((sizes[0] as number) / 2);
    const order = [...seen.keys()].sort((a, b) => ((a * 7) % things.length) - ((b * 7) % things.length));
    for (const at of order) {
      await exact.back(seen[at] as Seen);
      expect(await ask("digest"), things[at]).toBe(told[at]);
    }
  });

  // To look at memory from outside brings pages back.
  test("also where nobody looks at it", async () => {
    const made: { checkpoint: Checkpoint; told: string }[] = [];
    for (const thing of things) {
      await ask(thing);
      const checkpoint = await exact.held.checkpoint();
      made.push({ checkpoint, told: await ask("digest") });
    }
    for (const [index, { checkpoint, told }] of [...made.entries()].reverse()) {
      await exact.held.back(checkpoint);
      expect(await ask("digest"), things[index]).toBe(told);
    }
  });

  test.skipIf(lacking("compiler"))("that one process writes into another while CRIU lets them go", async () => {
    const program = join(exact.held.path("."), "writer");
    execFileSync("cc", ["-O1", "-o", program, fixture("writer.c")]);
    const { held } = exact;
    const before = await held.checkpoint();
    await held.sh("./writer 8 & sleep 1");
    for (let round = 0; round < 2; round++) {
      const checkpoints = [await held.checkpoint(), await held.checkpoint()];
      expect((await held.back(checkpoints[1] as Checkpoint)).notRestored).toEqual([]);
      await held.sh("sleep 0.1");
    }
    expect(await held.sh("cat bad 2>/dev/null; pgrep -c writer")).toBe("9");
    await held.back(before);
  });

  test("of nobody where it is not wanted: a program's own marks of what it has written stay", async () => {
    const held = await Held.open({ network: "own", trackMemory: false });
    try {
      await held.sh("sleep infinity & cat /proc/$!/smaps >before; echo $! >pid");
      const images = [await held.checkpoint(), await held.checkpoint()];
      expect(await held.sh("grep -c '^VmFlags:.* uw' /proc/$(<pid)/smaps || :")).toBe("0");
      expect((await held.back(images[0] as Checkpoint)).notRestored).toEqual([]);
      await held.checkpoint();
      const folder = join(held.base, "store", "images");
      const links = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
        path.endsWith("/parent"),
      );
      expect(links).toEqual([]);
    } finally {
      await held.end();
    }
  });

  test("behind a rewind too", async () => {
    await ask("write one page");
    const first = await exact.capture();
    await ask("give pages back");
    await exact.back(first);
    await ask("write a file's page");
    const second = await exact.capture();
    expect(parent(second)).toBeDefined();
    await exact.back(first);
    await exact.back(second);
    await exact.undo();
  });
});
