// An environment in another process, which returns a new handle on each restore, passes the suite and serves a session.
import * as fs from "node:fs";
import { join } from "node:path";
import type { Environment } from "agentrewind";
import { environmentSuite } from "agentrewind/conformance";
import { describe, expect, test } from "vitest";
import { openRemoteEnvironment } from "../examples/remote-environment/environment.ts";
import { endSession, makePlace, useRewind } from "./helpers/workspace.ts";

describe("the remote environment of the example", () => {
  const bases = new WeakMap<Environment, string>();
  async function open(base: string): Promise<Environment> {
    const environment = await openRemoteEnvironment(base);
    bases.set(environment, base);
    return environment;
  }
  const suite = environmentSuite({
    name: "remote-example",
    create: () => open(makePlace().base),
    reopen: (closed) => open(bases.get(closed) as string),
    async damage(environment, manifest) {
      const state = join(bases.get(environment) as string, "states", manifest.files as string);
      for (const name of fs.readdirSync(state)) {
        const path = join(state, name);
        if (fs.readFileSync(path, "utf8").includes("only here")) fs.rmSync(path);
      }
    },
  });
  for (const { name, run } of suite) test(name, run);

  test("openRewind works with it: checkpoint, rewind, undo, and after a restart", async () => {
    const place = makePlace();
    const base = join(place.base, "remote");
    const first = await useRewind(place, { environment: await openRemoteEnvironment(base) });
    const { environment } = first;
    const thread = first.thread("t");
    await environment.writeFile("data/f", "one");
    await thread.checkpoint({ context: { messages: ["m0"] } });
    await environment.exec("echo two > data/f; echo x > data/new");
    await thread.checkpoint({ context: { messages: ["m0", "m1"] } });
    await environment.exec("rm -r data");

    const result = await thread.rewind({ to: "c0", lesson: "careful" });
    expect(result.context.messages).toEqual(["m0"]);
    expect(result.restored.added).toContain("data/f");
    expect(Buffer.from(await environment.readFile("data/f")).toString()).toBe("one");
    expect(await environment.list("data")).toEqual([{ name: "f", type: "file" }]);
    await endSession(first);

    const second = await useRewind(place, { environment: await openRemoteEnvironment(base) });
    expect(second.thread("t").head).toBe("c0");
    await second.thread("t").undo();
    expect(await second.environment.list("")).toEqual([]);
    await second.thread("t").rewind({ to: "c1" });
    expect((await second.environment.exec("cat data/f data/new")).stdout).toBe("two\nx\n");
    expect(fs.readdirSync(place.workspace), "nothing happens on the host").toEqual([]);
  });
});
