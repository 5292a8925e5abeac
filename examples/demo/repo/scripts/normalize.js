// Rewrites data/export.csv into the plain form that the loader reads. Made for the yearly overview: rows numbered, whole euros.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../data/export.csv", import.meta.url);
const [header, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");

const plain = lines.map((line, index) => {
  const fields = line.split(";");
  const euros = fields
    .at(-1)
    .replace(/[.,]\d\d$/, "")
    .replaceAll(/[.,]/g, "");
  return [index + 1, ...fields.slice(1, -1), `${euros}.00`].join(";");
});

writeFileSync(file, `${[header, ...plain].join("\n")}\n`);
console.log(`normalized ${plain.length} rows of data/export.csv`);
