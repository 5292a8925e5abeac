// The sandbox environment passes the exported suite, with layers on btrfs.
import { randomBytes } from "node:crypto";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "agentrewind";
import { type EnvironmentInitializer, environmentSuite } from "agentrewind/conformance";
import { afterAll, beforeAll, test } from "vitest";
import { type Image, openImage } from "../../src/environment/sandbox/layers/image.ts";
import { openSandbox } from "../../src/environment/sandbox/open.ts";
import { loadNative, type Native } from "../../src/native.ts";
import { openStore } from "../../src/store/store.ts";
import { lacking } from "../capabilities.ts";
import { mkfsBtrfs } from "../helpers/tools.ts";
import { makePlace } from "../helpers/workspace.ts";

const needed = ["native", "root", "loop", "btrfs", "overlay", "cgroup2", "namespaces", "criu"] as const;

if (lacking(...needed)) test.skip(`the sandbox needs ${needed.join(", ")}`);
else {
  const shared = realpathSync(mkdtempSync(join(tmpdir(), "agentrewind-sandboxes-")));
  const store = openStore(shared);
  // Mounted for the whole file: each environment would mount and unmount it.
  let image: Image;
  beforeAll(async () => {
    image = await openImage({ store: shared, native: loadNative().native as Native, mkfs: mkfsBtrfs() });
  });
  afterAll(async () => {
    await image.close();
    store.close();
    rmSync(shared, { recursive: true });
  });
  const made = new WeakMap<Environment, { workspace: string; id: string }>();
  let generation = 0;
  const open = async (workspace: string, id: string): Promise<Environment> => {
    const environment = await openSandbox({
      workspace,
      store: shared,
      id,
      objects: store.open(id).objects,
      raiseGeneration: () => ++generation,
    });
    await environment.resume?.(null);
    made.set(environment, { workspace, id });
    return environment;
  };
  const initializer: EnvironmentInitializer = {
    name: "sandbox",
    create: () => open(makePlace().workspace, `test-${randomBytes(6).toString("hex")}`),
    reopen: (closed) => {
      const { workspace, id } = made.get(closed) as { workspace: string; id: string };
      return open(workspace, id);
    },
  };
  for (const { name, run } of environmentSuite(initializer)) test(name, run, 60_000);
}
