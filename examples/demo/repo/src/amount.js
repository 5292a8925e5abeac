// Reads and writes amounts of money. In the program an amount is a whole number of cents.

export function parseAmount(text) {
  const match = /^(-?)(\d+)\.(\d{2})$/.exec(text);
  if (match === null) throw new Error(`bad amount "${text}"`);
  const [, sign, euros, cents] = match;
  const amount = Number(euros) * 100 + Number(cents);
  return sign === "-" ? -amount : amount;
}

export function formatAmount(amount) {
  const digits = String(Math.abs(amount)).padStart(3, "0");
  return `${amount < 0 ? "-" : ""}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
