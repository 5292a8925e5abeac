// What the options of all benches are made of.

/** Names between commas. */
export const list = (text: string): string[] =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");

/** @throws Error that names the option, for anything but a whole number from 1 */
export function count(option: string, text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new Error(`${option} ${text}: give a whole number from 1.`);
  return number;
}
