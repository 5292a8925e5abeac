// LangGraph's own suite for checkpointers passes around savers that pass it.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { validate } from "@langchain/langgraph-checkpoint-validation";
import { openRewind, type Rewind } from "agentrewind";
import { rewindCheckpointer } from "agentrewind/langgraph";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { savers } from "./harness.ts";

// The suite takes them from there.
Object.assign(globalThis, { describe, it, test, expect, beforeAll, beforeEach, afterAll, afterEach });

for (const [name, make] of savers.slice(0, 2)) {
  let base: string;
  let rewind: Rewind;
  validate({
    // The suite leaves out what the saver of that name does not do.
    checkpointerName: name === "SqliteSaver" ? "@langchain/langgraph-checkpoint-sqlite" : name,
    async beforeAll() {
      base = mkdtempSync(join(tmpdir(), "arw-validation-"));
      mkdirSync(join(base, "work"));
      rewind = await openRewind({ workspace: join(base, "work"), store: join(base, "store") });
    },
    async afterAll() {
      expect(await rewind.verify()).toEqual([]);
      await rewind.close();
      rmSync(base, { recursive: true, force: true });
    },
    createCheckpointer: () => rewindCheckpointer(make(), rewind) as BaseCheckpointSaver,
  });
}
