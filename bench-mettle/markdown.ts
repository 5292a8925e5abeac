// What the benches' tables are made of.

/** The first column is text, the others are numbers. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");
}

/** In percent; "-" of nothing. */
export const share = (part: number, all: number): string => (all === 0 ? "-" : `${((100 * part) / all).toFixed(0)} %`);

export const sum = (list: readonly number[]): number => list.reduce((total, one) => total + one, 0);
