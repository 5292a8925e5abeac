// Does this CRIU bring a process back? A server with threads and a counter is dumped, ended and restored in namespaces of its own.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const server = `
  const { openSync, writeSync } = require("node:fs");
  const count = openSync("count", "w");
  require("node:net").createServer().listen(0, "127.0.0.1", () => {
    let n = 1000;
    setInterval(() => writeSync(count, String(++n), 0), 5);
  });
`;

// The first process of the namespace: when it ends, all end. The server must not keep descriptors that came from outside.
const script = `
set -e
cd "$1"; node="$2"; shift 2
mount -t tmpfs none /run
UV_USE_IO_URING=0 setsid "$node" -e '${server}' </dev/null >/dev/null 2>&1 8<&- &
until [ -s count ]; do sleep 0.01; done
"$@" dump --tree $! --images-dir images --log-file dump.log
wait $! || true
before=$(cat count)
"$@" restore --restore-detached --images-dir images --log-file restore.log
tries=0
until [ "$(cat count)" -gt "$((before + 1))" ]; do
  tries=$((tries + 1)); [ $tries -lt 500 ]; sleep 0.01
done
`;

/** Null, or why not. */
export async function selfTest({ prefix, command }) {
  const { runProgram } = await import("../../dist/src/environment/sandbox/run.js");
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-criu-"));
  const tools = await open(prefix, "r");
  try {
    mkdirSync(join(folder, "images"));
    const namespaces = ["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"];
    const { exitCode, stderr } = await runProgram(
      ["unshare", ...namespaces, "sh", "-c", script, "sh", folder, process.execPath, ...command],
      { folder: tools.fd, timeoutMs: 30_000 },
    );
    if (exitCode === 0) return null;
    const logs = ["dump.log", "restore.log"].map((name) => errorsOf(join(folder, "images", name)));
    return `a process that it dumped did not come back (${logs.join("") || stderr.trim() || "it does not count on"})`;
  } finally {
    await tools.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function errorsOf(log) {
  try {
    const line = readFileSync(log, "utf8")
      .split("\n")
      .find((one) => one.includes("Error ("));
    return line?.replace(/^.*Error \([^)]*\): /, "") ?? "";
  } catch {
    return "";
  }
}
