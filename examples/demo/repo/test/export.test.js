import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readPayments, settle, total } from "../src/settle.js";

const read = (name) => readFileSync(new URL(`../data/${name}`, import.meta.url));
const payments = () => readPayments(read("export.csv").toString());

test("data/export.csv is the file that the bank sent", () => {
  const [expected] = read("export.csv.sha256").toString().split(" ");
  const actual = createHash("sha256").update(read("export.csv")).digest("hex");
  assert.equal(actual, expected, "data/export.csv is not the file that the bank sent: its checksum differs");
});

test("the payments add up to the bank's control total", () => {
  const statement = JSON.parse(read("statement.json"));
  assert.equal(payments().length, statement.payments);
  assert.equal(total(payments()), statement.total);
});

test("the open invoices of the month are known", () => {
  const { open, unknown } = settle(JSON.parse(read("invoices.json")), payments());
  assert.deepEqual(open, { "INV-2103": 6040, "INV-2105": 5782 });
  assert.equal(unknown.length, 1);
});
