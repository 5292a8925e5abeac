// Matches payments with invoices.
import { parseAmount } from "./amount.js";
import { parseRows } from "./csv.js";

/** The payments of an export. The bank may list a transaction twice; it counts once. */
export function readPayments(text) {
  const rows = new Map(parseRows(text).map((row) => [row.transaction, row]));
  return [...rows.values()].map(({ date, reference, payer, amount }) => ({
    date,
    reference,
    payer,
    amount: parseAmount(amount),
  }));
}

/** What is open for each invoice that is not paid in full, and the payments that belong to no invoice. */
export function settle(invoices, payments) {
  const open = new Map(invoices.map(({ number, amount }) => [number, amount]));
  const unknown = [];
  for (const payment of payments) {
    if (open.has(payment.reference)) open.set(payment.reference, open.get(payment.reference) - payment.amount);
    else unknown.push(payment);
  }
  return { open: Object.fromEntries([...open].filter(([, amount]) => amount !== 0)), unknown };
}

export function total(payments) {
  return payments.reduce((sum, { amount }) => sum + amount, 0);
}
