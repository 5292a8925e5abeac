import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRows } from "../src/csv.js";

test("each line becomes an object with the header's names", () => {
  assert.deepEqual(parseRows("a;b\n1;2\n3;\n"), [
    { a: "1", b: "2" },
    { a: "3", b: "" },
  ]);
});

test("a quoted field may hold semicolons and quotes", () => {
  assert.deepEqual(parseRows('a;b\n"x; ""y""";2'), [{ a: 'x; "y"', b: "2" }]);
});

test("a line with a field too many is named", () => {
  assert.throws(() => parseRows("a;b\n1;2\n1;2;3"), /line 3: 3 fields instead of 2/);
});
