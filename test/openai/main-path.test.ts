// The agent takes back a wrong step inside of a loop that knows nothing of it, in every form of OpenAI's APIs.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { allText, mainScript, occurrences, openScene } from "../langchain/harness.ts";
import { client, loops, writesFiles } from "./harness.ts";

describe.each(Object.entries(loops))("%s", (_name, loop) => {
  it("rewinds conversation and files, and goes on in the same run", async () => {
    const scene = await openScene(mainScript());
    const openai = client(scene);
    const list: unknown[] = [];
    expect(await loop(openai, writesFiles(scene), "go", list)).toBe("all done");
    expect(scene.files()).toEqual(["better.txt", "good.txt"]);
    expect(readFileSync(join(scene.workspace, "good.txt"), "utf8")).toBe("yes");
    const { requests } = scene.server;
    const at = requests.findIndex((request) => allText(request).includes("You are back at"));
    expect(at).toBeGreaterThan(0);
    for (const request of requests.slice(at)) {
      const text = allText(request);
      expect(text).toContain("wrote good.txt");
      expect(text).not.toContain("wrote bad.txt");
      expect(text).not.toContain("Checkpoints, newest first");
      expect(occurrences(text, "You are back at")).toBe(1);
      expect(occurrences(text, "bad.txt was wrong; write better.txt")).toBe(1);
    }
    // The caller never sees our calls.
    expect(JSON.stringify(list)).not.toContain("list_checkpoints");
    expect(JSON.stringify(list)).not.toContain('"rewind"');
    await scene.close();
  });
});
