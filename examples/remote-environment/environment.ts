// An Environment whose files are on another machine, reached over HTTP; a restore moves it to a new one.
import { type Captured, type Environment, type Restored, RewindError } from "agentrewind";

/** @param url of the server (server.ts) */
export async function connectRemote(url: string): Promise<Environment> {
  let handle = "none";

  async function call<T>(name: string, args: readonly unknown[], signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) throw new RewindError("CAPTURE_FAILED", `${name} was given up before it began.`);
    const init = { method: "POST", body: JSON.stringify(args), ...(signal === undefined ? {} : { signal }) };
    const reply = (await (await fetch(`${url}/${handle}/${name}`, init)).json()) as { ok: T } | { error: RewindError };
    if ("ok" in reply) return reply.ok;
    const { code, message, hint, details } = reply.error;
    throw new RewindError(code, message, { ...(hint === undefined ? {} : { hint }), ...(details && { details }) });
  }

  handle = await call<string>("start", []);
  const described = await call<Environment["capabilities"]>("describe", []);

  return {
    kind: "remote",
    capabilities: { ...described, programs: false, fork: false, inPlace: false },
    probe: async () => ({ status: "available", reason: `${handle} answers at ${url}` }),
    capture({ signal } = {}) {
      const captured = call<Captured & { id: string }>("capture", [], signal);
      const durable = captured.then(({ id }) => call<void>("durable", [id]));
      durable.catch(() => {});
      return { captured, durable };
    },
    async restore(manifest, { keep, paths, dryRun, signal } = {}) {
      const options = { keep: [...(keep ?? [])], ...(paths && { paths: [...paths] }), ...(dryRun && { dryRun }) };
      const result = await call<Restored>("restore", [manifest, options], signal);
      handle = result.moved ?? handle;
      return result;
    },
    diff: (from, to) => call("diff", [from, to]),
    exec: (command, { input, signal, ...options } = {}) =>
      call(
        "exec",
        [command, { ...options, ...(input === undefined ? {} : { input: Buffer.from(input).toString() }) }],
        signal,
      ),
    readFile: async (path) => Buffer.from(await call<string>("readFile", [path]), "base64"),
    writeFile: (path, data) => call("writeFile", [path, Buffer.from(data).toString("base64")]),
    list: (path) => call("list", [path]),
    path: () => null,
    verify: (manifest) => call("verify", [manifest]),
    close: async () => {},
  };
}
