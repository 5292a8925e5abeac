// Sockets beside a lock, where their listener ends at any moment.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connectTo } from "../../src/store/socket.ts";
import { lacking } from "../capabilities.ts";
import { pythonPath } from "../helpers/python.ts";

const listener = `import socket, sys, time
one = socket.socket(socket.AF_UNIX)
one.bind(sys.argv[1])
one.listen(100)
print("ready", flush=True)
time.sleep(60)`;

test.skipIf(lacking("python"))("a listener that is killed before it takes a connection is none", async () => {
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-socket-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const child = spawn(pythonPath() as string, ["-IS", "-c", listener, join(folder, "it.sock")]);
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  const connected = Promise.all(Array.from({ length: 20 }, () => connectTo(folder, "it")));
  child.kill("SIGKILL");
  // Its end comes before this loop hears of the connections.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  expect(await connected).toEqual(Array(20).fill(undefined));
});
