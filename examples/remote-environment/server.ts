// A machine in another process: an environment behind HTTP, POST /HANDLE/CALL. Each restore makes a new machine with a new handle.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRewindError, type Manifest, openRewind, type Rewind } from "agentrewind";

const base = mkdtempSync(join(tmpdir(), "remote-environment-"));
const machines = new Map<string, Rewind>();
const durables = new Map<string, Promise<void>>();
let made = 0;

async function start(from?: string): Promise<string> {
  const handle = `machine-${++made}`;
  if (from === undefined) mkdirSync(join(base, handle));
  else execFileSync("cp", ["-a", join(base, from), join(base, handle)]);
  machines.set(handle, await openRewind({ workspace: join(base, handle), store: join(base, "store") }));
  return handle;
}

async function stop(handle: string): Promise<void> {
  await machines.get(handle)?.close();
  machines.delete(handle);
  rmSync(join(base, handle), { recursive: true, force: true });
}

type Options = { keep: string[]; paths?: string[]; dryRun?: boolean };

async function restore(handle: string, manifest: Manifest, { keep, paths, dryRun }: Options): Promise<unknown> {
  const options = { keep: new Set(keep), ...(paths && { paths: new Set(paths) }), ...(dryRun && { dryRun }) };
  if (dryRun) return (machines.get(handle) as Rewind).environment.restore(manifest, options);
  const next = await start(handle);
  try {
    const restored = await (machines.get(next) as Rewind).environment.restore(manifest, options);
    await stop(handle);
    return { ...restored, generation: made, moved: next };
  } catch (error) {
    await stop(next);
    throw error;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the arguments are JSON that only our own client sends
async function answer(handle: string, call: string, args: any[], signal: AbortSignal): Promise<unknown> {
  if (call === "start") return start();
  if (call === "durable") return durables.get(args[0]);
  const { environment } = machines.get(handle) as Rewind;
  if (call === "describe") return environment.capabilities;
  if (call === "capture") {
    const capture = environment.capture();
    const id = `${handle}-${durables.size}`;
    durables.set(id, capture.durable);
    return { ...(await capture.captured), id };
  }
  if (call === "restore") return restore(handle, args[0], args[1]);
  if (call === "exec") return environment.exec(args[0], { ...args[1], signal });
  if (call === "readFile") return Buffer.from(await environment.readFile(args[0])).toString("base64");
  if (call === "writeFile") return environment.writeFile(args[0], Buffer.from(args[1], "base64"));
  if (call === "diff") return environment.diff(args[0], args[1]);
  if (call === "list") return environment.list(args[0]);
  if (call === "verify") return environment.verify(args[0]);
  throw new Error(`no call ${call}`);
}

const server = createServer(async (request, response) => {
  const [, handle = "", call = ""] = (request.url ?? "").split("/");
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  try {
    let body = "";
    for await (const part of request) body += part;
    response.end(JSON.stringify({ ok: (await answer(handle, call, JSON.parse(body), gone.signal)) ?? null }));
  } catch (error) {
    const told = isRewindError(error) ? error.toJSON() : { code: "COMMAND_FAILED", message: String(error) };
    response.statusCode = 500;
    response.end(JSON.stringify({ error: told }));
  }
});

server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
process.once("SIGTERM", async () => {
  for (const handle of [...machines.keys()]) await stop(handle);
  rmSync(base, { recursive: true, force: true });
  process.exit();
});
