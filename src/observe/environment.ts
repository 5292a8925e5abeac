// An environment in which everything works but what would store or move anything: a capture is only a look.
import { performance } from "node:perf_hooks";
import type { Captured, CaptureOptions, Environment, FileChanges, Manifest } from "../environment/environment.ts";

const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

/** The state now: equal names where nothing changed. */
export type Look = (signal: AbortSignal | undefined) => Promise<Pick<Captured, "manifest" | "problems" | "bytes">>;

export function observedEnvironment(inner: Environment, look: Look): Environment {
  const observed: Environment = {
    kind: inner.kind,
    capabilities: { ...inner.capabilities, fork: false },
    probe: () => inner.probe(),
    capture({ signal }: CaptureOptions = {}) {
      const start = performance.now();
      const captured = look(signal).then((seen) => ({ ...seen, captureMs: performance.now() - start }));
      const durable = captured.then(() => {});
      durable.catch(() => {});
      return { captured, durable };
    },
    restore: async () => ({ generation: 0, restored: nothing, notRestored: [] }),
    diff: async () => nothing,
    async settle() {},
    exec: (command, options) => inner.exec(command, options),
    readFile: (path) => inner.readFile(path),
    writeFile: (path, data) => inner.writeFile(path, data),
    list: (path) => inner.list(path),
    path: (path) => inner.path(path),
    verify: async () => [],
    close: () => inner.close(),
  };
  if (inner.resume !== undefined)
    observed.resume = (newest: Manifest | null, keep) => inner.resume?.(newest, keep) ?? Promise.resolve();
  if (inner.apply !== undefined)
    observed.apply = (options) => inner.apply?.(options) as ReturnType<NonNullable<Environment["apply"]>>;
  return observed;
}

/** Nothing can be told without a capture: each look may be another state. */
export function unknownLook(): Look {
  let looks = 0;
  return async () => {
    const name = `${looks++}`;
    return { manifest: { files: name, processes: name }, problems: [], bytes: 0 };
  };
}
