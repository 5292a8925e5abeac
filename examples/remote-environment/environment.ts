// An Environment whose files live in another process: what an adapter to a hosted sandbox looks like.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { type Captured, type Environment, type ErrorCode, RewindError } from "agentrewind";

/** Starts the server on the data in `base` and talks to it. Each restore returns a new handle (`moved`). */
export async function openRemoteEnvironment(base: string): Promise<Environment> {
  const token = randomBytes(16).toString("hex");
  const server: ChildProcess = spawn(
    process.execPath,
    ["--import", "tsx", join(import.meta.dirname, "server.ts"), base],
    { cwd: import.meta.dirname, env: { ...process.env, TOKEN: token }, stdio: ["pipe", "pipe", "inherit"] },
  );
  const [line] = (await once(server.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  const { port } = JSON.parse(line.toString()) as { port: number };

  async function call<T>(name: string, argument: unknown, signal: AbortSignal | null = null): Promise<T> {
    const response = await fetch(`http://127.0.0.1:${port}/${name}`, {
      method: "POST",
      headers: { authorization: token, connection: "close" },
      body: JSON.stringify(argument ?? null),
      signal,
    });
    const { ok, error } = (await response.json()) as { ok: T; error?: { code: ErrorCode; message: string } };
    if (error !== undefined) throw new RewindError(error.code, error.message);
    return ok;
  }
  const refuseAborted = (signal: AbortSignal | undefined): void => {
    if (signal?.aborted) throw new RewindError("CAPTURE_FAILED", "It was given up before it began.");
  };
  const base64 = (data: string | Uint8Array): string => Buffer.from(data as Uint8Array).toString("base64");

  return {
    kind: "remote-example",
    capabilities: {
      files: true,
      processes: false,
      fork: false,
      inPlace: false,
      freeze: false,
      memory: false,
      lacks: ["extended attributes", "names that are not UTF-8"],
    },
    probe: async () => ({ status: "available", reason: `a server on port ${port}` }),
    capture({ signal } = {}) {
      const captured = (async (): Promise<Captured> => {
        const start = performance.now();
        refuseAborted(signal);
        const files = await call<string>("capture", null, signal);
        return { manifest: { files, processes: null }, problems: [], bytes: 0, captureMs: performance.now() - start };
      })();
      const durable = captured.then(() => {});
      durable.catch(() => {});
      return { captured, durable };
    },
    async restore({ files }, { keep = new Set(), signal } = {}) {
      refuseAborted(signal);
      return call("restore", { files, keep: [...keep] });
    },
    diff: (from, to) => call("diff", { from: from.files, to: to.files }),
    exec: (command, { signal, input, ...options } = {}) =>
      call("exec", { command, options: { ...options, input: input === undefined ? "" : `${input}` } }, signal),
    readFile: async (path) => Buffer.from(await call<string>("readFile", path), "base64"),
    writeFile: (path, data) => call("writeFile", { path, data: base64(data) }),
    list: (path) => call("list", path),
    path: () => null,
    verify: ({ files }) => call("verify", files),
    async close() {
      if (server.exitCode !== null || server.signalCode !== null) return;
      server.stdin?.end();
      await once(server, "exit");
    },
  };
}
