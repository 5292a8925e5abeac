// A command as it was started, in the short form in which calls are told.
import { callName } from "../../session/turn-stats.ts";
import type { Words } from "./tree.ts";

const shells = new Set(["sh", "bash", "dash", "zsh", "ksh"]);
const tool = "exec";

/** Of a shell that was given a line: the line's first program. */
export function nameOfWords(words: Words): string {
  const input = lineOf(words) ?? words.map(oneWord).join(" ");
  const name = callName({ tool, input });
  return name === tool ? baseOf(words) : name.slice(tool.length + 2);
}

/** Behind the first word that is no option come a script and what it is given. */
function lineOf(words: Words): string | undefined {
  if (!shells.has(baseOf(words))) return undefined;
  const options = words.slice(1);
  const first = options.findIndex((word) => !word.startsWith("-"));
  return first > 0 && options.slice(0, first).some((word) => /^-\w*c$/.test(word)) ? options[first] : undefined;
}

const baseOf = ([program = ""]: Words): string => program.split("/").at(-1)?.replace(/^-/, "") ?? "";

const oneWord = (word: string): string => (word === "" ? "''" : word.replace(/[\s;&|()]+/g, "_"));
