// A command as it was started, in the short form in which calls are told.
import { callName } from "../../session/turn-stats.ts";
import type { Words } from "./tree.ts";

const shells = new Set(["sh", "bash", "dash", "zsh", "ksh"]);

/** Of a shell that was given a line: the line's first program. */
export function nameOfWords(words: Words): string {
  const line = lineOf(words) ?? words.map(quoted).join(" ");
  return callName({ tool: "exec", input: line }).replace(/^exec: /, "");
}

function lineOf([program = "", ...rest]: Words): string | undefined {
  if (!shells.has(program.split("/").at(-1)?.replace(/^-/, "") ?? "")) return undefined;
  const at = rest.findIndex((word) => /^-\w*c$/.test(word));
  return at < 0 ? undefined : rest[at + 1];
}

const quoted = (word: string): string => (/[\s;&|()]/.test(word) ? word.replace(/[\s;&|()]+/g, "_") : word);
