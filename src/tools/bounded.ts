// Long output cut in its middle, with what was left out said at the place.

/** @param rest how to see what is left out */
export function bounded(text: string, limit: number, rest: string): string {
  if (text.length <= limit) return text;
  const head = startOfLine(text, Math.ceil(limit * 0.6));
  const tail = startOfLine(text, text.length - Math.floor(limit * 0.4));
  const left = text.slice(head, tail);
  let lines = 0;
  for (let at = left.indexOf("\n"); at >= 0; at = left.indexOf("\n", at + 1)) lines++;
  const begin = text.slice(0, head).replace(/\n$/, "");
  return `${begin}\n[… ${left.length} characters, ${lines} lines, left out here. ${rest} …]\n${text.slice(tail)}`;
}

/** How far a cut moves to fall between two lines. */
const slack = 400;

function startOfLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end >= 0 && end < at + slack ? end + 1 : between(text, at);
}

/** Not inside of a pair of surrogates. */
const between = (text: string, at: number): number => (/[\udc00-\udfff]/.test(text.charAt(at)) ? at + 1 : at);
