import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAmount, parseAmount } from "../src/amount.js";

test("an amount is a whole number of cents", () => {
  assert.equal(parseAmount("1204.50"), 120450);
  assert.equal(parseAmount("0.07"), 7);
});

test("a refund is negative", () => {
  assert.equal(parseAmount("-60.40"), -6040);
});

test("what is no amount is refused", () => {
  for (const text of ["", "12", "12.5", "1e3.00", "abc", "--1.00"]) {
    assert.throws(() => parseAmount(text), /bad amount/, text);
  }
});

test("an amount is written with two digits of cents", () => {
  assert.equal(formatAmount(-5), "-0.05");
  assert.equal(formatAmount(120450), "1204.50");
});
