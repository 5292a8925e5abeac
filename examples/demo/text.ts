// Fits text to a terminal.

export function shorten(text: string, length: number): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length <= length ? flat : `${flat.slice(0, length - 1)}…`;
}

/** Breaks at spaces where there are any. */
export function wrap(text: string, length: number): string[] {
  const piece = new RegExp(`.{1,${length}}(?= |$)|.{1,${length}}`, "gu");
  return text
    .split("\n")
    .flatMap((line) => line.match(piece)?.map((part, index) => (index === 0 ? part : part.trimStart())) ?? [""]);
}
