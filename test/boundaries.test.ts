// The check of dependency directions itself: it finds what it should.
import { expect, test } from "vitest";
import { violations } from "../scripts/check-boundaries.mjs";

test("a room that imports upwards is named", () => {
  expect(violations({ "src/store/bad.ts": 'import { Thread } from "../session/thread.ts";\n' })).toEqual([
    "src/store/bad.ts must not import ../session/thread.ts",
  ]);
  expect(violations({ "src/environment/x.ts": 'export type { A } from "../coordinator/pair.ts";' })).toHaveLength(1);
});

test("adapters and examples import the package by its public name only", () => {
  expect(violations({ "adapters/x/index.ts": 'import { a } from "../../src/errors.ts";' })).toHaveLength(1);
  expect(violations({ "examples/x.ts": 'const a = await import("../src/index.ts");' })).toHaveLength(1);
  expect(
    violations({ "adapters/x/index.ts": 'import { openRewind } from "agentrewind";\nimport { z } from "zod";' }),
  ).toEqual([]);
});

test("a multi-line import counts, and the package's own name does not belong in src", () => {
  expect(violations({ "src/store/a.ts": 'import {\n  b,\n  c,\n} from "../rewind.ts";' })).toHaveLength(1);
  expect(violations({ "src/store/a.ts": 'import { openRewind } from "agentrewind";' })).toHaveLength(1);
});

test("a circle of imports is named", () => {
  const found = violations({
    "src/store/a.ts": 'import "./b.ts";',
    "src/store/b.ts": 'import type { A } from "./a.ts";',
  });
  expect(found).toEqual(["import cycle: src/store/a.ts -> src/store/b.ts -> src/store/a.ts"]);
});

test("a file outside of every room is named", () => {
  expect(violations({ "src/loose.ts": "" })).toHaveLength(1);
});

test("a file of the store that changes files by itself is named", () => {
  const of = (text: string): string[] => violations({ "src/store/a.ts": text });
  expect(of('import { readFileSync, writeSync } from "node:fs";')).toEqual([
    "src/store/a.ts must change files through src/store/io.ts, not by writeSync",
  ]);
  expect(of('import {\n  closeSync,\n  fsync,\n} from "fs";')).toHaveLength(1);
  expect(of('import * as fs from "node:fs";')).toHaveLength(1);
  expect(of('import { openSync } from "node:fs";\nopenSync(path, "r+");')).toHaveLength(1);
  expect(of('import { openSync, readlinkSync } from "node:fs";\nopenSync(path, "r");')).toEqual([]);
});
