// Text for a terminal: whatever a file, a tool or a model wrote, no escape sequence and no hidden reordering reaches it.

/** Control and format characters (escape sequences, turned direction, hidden text) but tab, newline and joiners; line separators. */
const unsafe = /(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

function shown(char: string): string {
  const code = char.codePointAt(0) as number;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/** Keeps the lines. */
export const safe = (text: string): string => text.replace(unsafe, shown);

/** On one line, at most `limit` characters. */
export function oneLine(text: string, limit = Number.POSITIVE_INFINITY): string {
  const one = safe(text.replace(/\s+/g, " ").trim());
  const chars = [...one];
  return chars.length <= limit
    ? one
    : `${chars
        .slice(0, limit - 1)
        .join("")
        .trimEnd()}…`;
}

/** JSON whose text is as safe: the same values, with every such character escaped. */
export function safeJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(unsafe, (char) =>
    [...Array(char.length).keys()].map((i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""),
  );
}
