// The sandbox example: the service that the agent killed is back with what it had counted, and goes on.
import { expect, test } from "vitest";
import { runExample } from "../../examples/sandbox/run.ts";
import { lesson } from "../../examples/sandbox/script.ts";
import { lacking } from "../capabilities.ts";

test.skipIf(lacking("native", "root", "loop", "btrfs", "overlay", "cgroup2", "namespaces", "criu", "python"))(
  "an agent rewinds to its running service",
  async () => {
    const run = await runExample();
    expect(run.errors).toEqual([]);
    expect(run.findings).toEqual([]);
    const orders = run.told.filter((text) => /^order \d/.test(text)).map((text) => text.trim());
    expect(orders).toEqual(["order 1", "order 2", "order 3"]);
    const back = run.told.find((text) => text.startsWith("You are back at")) ?? "";
    expect(back).toContain(
      "Running programs, shells and background jobs are back as they were then, with their memory.",
    );
    expect(back).toContain(lesson);
    expect(run.answer).toBe("The orders have the numbers 1, 2 and 3.");
    expect(run.next).toBe("order 4");
    expect(run.lessons).toEqual([lesson]);
  },
  60_000,
);
