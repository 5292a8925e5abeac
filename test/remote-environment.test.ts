// The example environment in another process passes the exported suite, and a thread rewinds over it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { environmentSuite } from "agentrewind/conformance";
import { expect, test } from "vitest";
import { connectRemote } from "../examples/remote-environment/environment.ts";
import { remoteServer } from "./helpers/remote.ts";
import { makePlace } from "./helpers/workspace.ts";

const folder = join(import.meta.dirname, "../examples/remote-environment");
const url = remoteServer();

for (const { name, run } of environmentSuite({ name: "remote", create: () => connectRemote(url()) })) test(name, run);

test("a thread rewinds over it, and the handle moves", async () => {
  const { workspace, store } = makePlace();
  const environment = await connectRemote(url());
  const rewind = await openRewind({ workspace, store, environment });
  const thread = rewind.thread("t");
  await environment.writeFile("a.txt", "right");
  const { id } = await thread.checkpoint({ context: { messages: ["a"] } });
  await environment.exec("echo wrong > a.txt; echo more > b.txt");
  await thread.checkpoint({ context: { messages: ["a", "b"] } });
  const result = await thread.rewind({ to: id });
  expect(result.context.messages).toEqual(["a"]);
  expect(Buffer.from(await environment.readFile("a.txt")).toString()).toBe("right");
  expect((await environment.list("")).map((one) => one.name)).toEqual(["a.txt"]);
  await thread.undo();
  expect((await environment.exec("cat a.txt b.txt")).stdout).toBe("wrong\nmore\n");
  expect(await rewind.verify()).toEqual([]);
  await rewind.close();
});

test("the example is at most 150 lines", () => {
  const lines = ["server.ts", "environment.ts"].map(
    (name) => readFileSync(join(folder, name), "utf8").split("\n").length - 1,
  );
  expect(lines.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(150);
});
