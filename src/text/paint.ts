// Colour, only for a terminal that wants it.
import util from "node:util";

type Style = Parameters<typeof util.styleText>[0];

/** Text in a style, or as it is. */
export type Paint = (style: Style, text: string) => string;

export const unpainted: Paint = (_, text) => text;

export function paintFor(stream: { readonly isTTY?: boolean }): Paint {
  const wanted = stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  // Node has styleText from 20.12 on.
  if (!wanted || util.styleText === undefined) return unpainted;
  return (style, text) => util.styleText(style, text, { validateStream: false });
}
