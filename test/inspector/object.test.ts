// The object that the package brings is that of the committed sources, and what this machine's clang makes of them is its equal.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { loadNative } from "../../src/native.ts";
import { lacking } from "../capabilities.ts";

const root = resolve(import.meta.dirname, "../..");
const prebuilt = join(root, "bpf/prebuilt");
const script = join(root, "scripts/build-bpf.mjs");

const about = (folder: string) => JSON.parse(readFileSync(join(folder, "effects.bpf.json"), "utf8"));

test("the prebuilt object is of these sources, and names its compiler", () => {
  const digest = execFileSync(
    process.execPath,
    ["--input-type=module", "-e", `console.log((await import(process.env.SCRIPT)).sourcesDigest())`],
    { encoding: "utf8", env: { ...process.env, SCRIPT: pathToFileURL(script).href } },
  ).trim();
  expect(about(prebuilt), "node scripts/build-bpf.mjs --prebuilt").toEqual({
    sources: digest,
    compiler: expect.stringMatching(/clang version \d+/),
  });
});

test.skipIf(lacking("native", "ebpf", "clang"))("built anew it has the same programs and maps", async () => {
  const folder = mkdtempSync(join(tmpdir(), "arw-bpf-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  execFileSync(process.execPath, [script, "--into", folder]);
  const form = async (object: string): Promise<string[]> => {
    const { native } = loadNative();
    if (native === null) throw new Error("no addon");
    const effects = new native.Effects((await native.loadEffects(readFileSync(object), 0, 0, 0)) as object);
    try {
      return effects.form().sort();
    } finally {
      effects.close();
    }
  };
  const committed = await form(join(prebuilt, "effects.bpf.o"));
  expect(await form(join(folder, "effects.bpf.o"))).toEqual(committed);
  expect(committed).toContain("program on_call_end tp_btf/sys_exit");
  expect(committed).toContain("map counters 2 4 256 1025 1024");
  // The same compiler gives the same bytes.
  if (about(folder).compiler === about(prebuilt).compiler)
    expect(readFileSync(join(folder, "effects.bpf.o"))).toEqual(readFileSync(join(prebuilt, "effects.bpf.o")));
});
