// The example environment in another process, for one test file.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll } from "vitest";

/** Started before the file's tests and ended behind them. Gives its URL. */
export function remoteServer(): () => string {
  let server: ChildProcess;
  let url = "";
  beforeAll(async () => {
    const root = join(import.meta.dirname, "../..");
    const tsx = join(root, "node_modules/tsx/dist/esm/index.mjs");
    const main = join(root, "examples/remote-environment/server.ts");
    server = spawn(process.execPath, ["-C", "agentrewind-source", "--import", tsx, main], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [port] = await once(createInterface({ input: server.stdout as NodeJS.ReadableStream }), "line");
    url = `http://127.0.0.1:${port}`;
  });
  afterAll(async () => {
    server.kill("SIGTERM");
    await once(server, "exit");
  });
  return () => url;
}
