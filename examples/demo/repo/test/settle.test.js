import assert from "node:assert/strict";
import { test } from "node:test";
import { readPayments, settle } from "../src/settle.js";

const invoices = [
  { number: "A", amount: 1000 },
  { number: "B", amount: 500 },
];

test("a transaction that is listed twice counts once", () => {
  const row = "9f;2026-03-02;A;Abel & Sons;10.00";
  const payment = { date: "2026-03-02", reference: "A", payer: "Abel & Sons", amount: 1000 };
  assert.deepEqual(readPayments(`transaction;date;reference;payer;amount\n${row}\n${row}\n`), [payment]);
});

test("an invoice that is paid in full is not open", () => {
  const { open } = settle(invoices, [{ reference: "A", amount: 1000 }]);
  assert.deepEqual(open, { B: 500 });
});

test("parts add up and a refund opens an invoice again", () => {
  const paid = [600, 400, -50].map((amount) => ({ reference: "A", amount }));
  assert.deepEqual(settle(invoices, paid).open, { A: 50, B: 500 });
});

test("a payment without an invoice is kept apart", () => {
  const stray = { reference: "", amount: 7 };
  assert.deepEqual(settle([], [stray]), { open: {}, unknown: [stray] });
});
