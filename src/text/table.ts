// Rows of text in columns.
import type { Paint } from "./paint.ts";

/** A line of titles, then the rows, each column as wide as its widest cell. */
export function columns(titles: readonly string[], rows: readonly (readonly string[])[], paint: Paint): string[] {
  const line = layOut(titles, rows);
  return [paint("dim", line(titles)), ...rows.map(line)];
}

/** How a row is written beside these titles and rows. */
export function layOut(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): (row: readonly string[]) => string {
  const widths = titles.map((title, column) =>
    rows.reduce((width, row) => Math.max(width, length(row[column] as string)), length(title)),
  );
  return (row) =>
    row
      .map((cell, column) => cell + " ".repeat((widths[column] as number) - length(cell)))
      .join("  ")
      .trimEnd();
}

const length = (text: string): number => [...text].length;
