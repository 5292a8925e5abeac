// The result as one SVG: a panel for each subject, milliseconds on a log scale, a dot at p50 and a whisker to p95.
import { operations } from "./arm.ts";
import type { Row, SubjectResult } from "./figures.ts";
import type { Result } from "./result.ts";
import { operationTitle } from "./table.ts";

/** Okabe and Ito's colours, which people with colour blindness tell apart. */
const colours = ["#d55e00", "#000000", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#e69f00"];
const panelWidth = 760;
const labels = 190;
const right = 70;
const rowHeight = 15;
const groupGap = 14;
const top = 44;
const bottom = 34;
const header = 74;

interface Scale {
  readonly low: number;
  readonly high: number;
  readonly x: (ms: number) => number;
}

export function svg(result: Result): string {
  const columns = result.subjects.length > 1 ? 2 : 1;
  const heights = result.subjects.map(panelHeight);
  const lines: string[] = [];
  const rowTops: number[] = [];
  let height = header;
  for (let index = 0; index < heights.length; index += columns) {
    rowTops.push(height);
    height += Math.max(...heights.slice(index, index + columns));
  }
  const width = panelWidth * columns;
  const armColours = new Map(result.arms.map(({ name }, index) => [name, colours[index % colours.length] as string]));
  lines.push(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(
      16,
      26,
      `Checkpoints and rewinds, ${result.date}: milliseconds, log scale; dot p50, whisker to p95`,
      'font-size="16"',
    ),
  );
  const shown = result.arms.filter(({ missing }) => missing === null);
  const step = Math.min(150, (width - 32) / Math.max(1, shown.length));
  for (const [index, { name, title }] of shown.entries()) {
    const x = 22 + index * step;
    lines.push(dot(x, 50, armColours.get(name) as string), text(x + 10, 54, title));
  }
  for (const [index, subject] of result.subjects.entries()) {
    const at = `translate(${(index % columns) * panelWidth} ${rowTops[Math.floor(index / columns)]})`;
    lines.push(`<g transform="${at}">`, ...panel(subject, armColours), "</g>");
  }
  lines.push("</svg>");
  return `${lines.join("\n")}\n`;
}

const groupsOf = ({ rows }: SubjectResult): Row[][] =>
  operations.map((operation) => rows.filter((row) => row.operation === operation)).filter((group) => group.length > 0);

function panelHeight(subject: SubjectResult): number {
  return top + bottom + groupsOf(subject).reduce((sum, rows) => sum + rows.length * rowHeight + groupGap, 0);
}

function panel(subject: SubjectResult, armColours: ReadonlyMap<string, string>): string[] {
  const scale = makeScale(subject.rows);
  const end = panelHeight(subject) - bottom;
  const lines = [
    text(16, 20, `${subject.name}, ${(subject.census.bytes / 1e6).toFixed(0)} MB`, 'font-size="14" font-weight="bold"'),
  ];
  for (let decade = scale.low; decade <= scale.high; decade *= 10) {
    const x = scale.x(decade);
    lines.push(
      `<line x1="${x}" y1="${top - 12}" x2="${x}" y2="${end}" stroke="#dddddd"/>`,
      text(x, end + 16, duration(decade), 'text-anchor="middle" fill="#555555"'),
    );
  }
  let y = top;
  for (const rows of groupsOf(subject)) {
    const middle = y + ((rows.length - 1) * rowHeight) / 2 + 4;
    lines.push(text(labels - 8, middle, operationTitle[(rows[0] as Row).operation], 'text-anchor="end"'));
    for (const { arm, ms } of rows) {
      const colour = armColours.get(arm) as string;
      const [from, to] = [scale.x(ms.p50), scale.x(ms.p95)];
      lines.push(
        `<line x1="${from}" y1="${y}" x2="${to}" y2="${y}" stroke="${colour}" stroke-width="2"/>`,
        `<line x1="${to}" y1="${y - 4}" x2="${to}" y2="${y + 4}" stroke="${colour}" stroke-width="2"/>`,
        dot(from, y, colour),
        text(to + 8, y + 4, duration(ms.p50), 'font-size="10" fill="#333333"'),
      );
      y += rowHeight;
    }
    y += groupGap;
    if (y < end)
      lines.push(
        `<line x1="16" y1="${y - rowHeight}" x2="${panelWidth - right}" y2="${y - rowHeight}" stroke="#eeeeee"/>`,
      );
  }
  return lines;
}

/** From the decade below the least to the one above the greatest. */
function makeScale(rows: readonly Row[]): Scale {
  const all = rows.flatMap(({ ms }) => [ms.p50, ms.p95]).map((ms) => Math.max(ms, 0.1));
  const low = 10 ** Math.floor(Math.log10(Math.min(...all)));
  const high = Math.max(low * 10, 10 ** Math.ceil(Math.log10(Math.max(...all))));
  const span = panelWidth - labels - right;
  const x = (ms: number): number =>
    Math.round((labels + (span * Math.log10(Math.max(ms, low) / low)) / Math.log10(high / low)) * 10) / 10;
  return { low, high, x };
}

const dot = (x: number, y: number, colour: string): string => `<circle cx="${x}" cy="${y}" r="4" fill="${colour}"/>`;

function text(x: number, y: number, words: string, attributes = ""): string {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<text x="${x}" y="${y}"${attributes === "" ? "" : ` ${attributes}`}>${safe}</text>`;
}

function duration(ms: number): string {
  if (ms >= 1_000) return `${Number((ms / 1_000).toPrecision(3))} s`;
  return `${Number(ms.toPrecision(3))} ms`;
}
