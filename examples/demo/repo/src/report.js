// Prints the open invoices of the month.
import { readFileSync } from "node:fs";
import { formatAmount } from "./amount.js";
import { readPayments, settle } from "./settle.js";

const read = (name) => readFileSync(new URL(`../data/${name}`, import.meta.url), "utf8");

const { open, unknown } = settle(JSON.parse(read("invoices.json")), readPayments(read("export.csv")));
for (const [number, amount] of Object.entries(open)) console.log(`${number}  ${formatAmount(amount)}`);
for (const { date, payer, amount } of unknown) console.log(`unknown    ${formatAmount(amount)}  ${payer}, ${date}`);
