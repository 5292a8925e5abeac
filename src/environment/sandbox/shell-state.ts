// What a persistent shell knows, as it writes it down behind each command (shell-settings.ts): whether a command has left it as it was.
import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { prefix } from "./shell-settings.ts";

/** The parts in the order in which they are written, each behind the one before and a NUL. */
const parts = [
  "variables",
  "functions",
  "functionNames",
  "aliases",
  "shopt",
  "set",
  "traps",
  "umask",
  "folders",
  "hashed",
  "builtins",
  "completions",
  "history",
  "arguments",
] as const;

/** Variables that say only that a command ran, or when, as the shell declares its own: behind an `unset` such a name is a variable like any other. */
const passing = [
  /^declare -\S*i\S* (?:BASHPID|HISTCMD|LINENO|RANDOM|SECONDS|SRANDOM)(?=[=\n]|$)/,
  /^declare -\S*a\S* (?:BASH_ARGC|BASH_ARGV|BASH_LINENO|BASH_SOURCE|FUNCNAME|PIPESTATUS)(?=[=\n]|$)/,
  /^declare -\S*A\S* BASH_CMDS(?=[=\n]|$)/,
  /^declare -\S+ (?:_|BASH_COMMAND|BASH_MONOSECONDS|BASH_SUBSHELL)(?=[=\n]|$)/,
  /^declare -\S+ (?:EPOCHREALTIME|EPOCHSECONDS|LINENO)(?:="[\d.,]+")?\n?$/,
];

/** Of these the shell runs what they hold, or may, when nobody has given it a command. */
const runs = ["PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "TMOUT", "MAILPATH"];
/** As `declare -p` writes them where nobody has changed them. */
const quiet = new Set(['PS4="+ "', 'PS1=""', 'PS2=""']);
const ownTrap = new RegExp(`^trap -- '>"\\$\\{${prefix}_call-/nowhere\\}/signal-15"; exit 143' SIGTERM\\n$`);
/** Above that a shell's state is not looked at: whoever keeps so much in variables changes it anyway. Bytes. */
export const mostState = 1 << 20;

/**
 * Equal for two moments of one shell between which no command changed what a later one can see. undefined where that cannot be told: a trap or a prompt that runs something by itself, or a text
 * that is not what the shell writes.
 */
export function shellDigest(text: Buffer): string | undefined {
  if (text.length > mostState) return undefined;
  const told = text.toString("latin1").split("\0");
  if (told.pop() !== "" || told.length !== parts.length) return undefined;
  const part = (name: (typeof parts)[number]): string => told[parts.indexOf(name)] as string;
  if (!ownTrap.test(part("traps"))) return undefined;
  const variables = declared(part("variables"));
  if (variables === undefined) return undefined;
  for (const name of runs) {
    const said = variables
      .get(name)
      ?.replace(/^declare \S+ /, "")
      .trimEnd();
    if (said !== undefined && !quiet.has(said)) return undefined;
  }
  const path = /^[^"]*"(.*)"$/s.exec(variables.get("PATH")?.trimEnd() ?? "")?.[1]?.split(":") ?? [];
  const hash = createHash("sha256");
  for (const [index, name] of parts.entries()) {
    const said =
      name === "variables"
        ? kept(variables)
        : name === "hashed"
          ? misled(part("hashed"), path)
          : (told[index] as string);
    hash.update(`${said.length} `).update(said, "latin1");
  }
  return hash.digest("hex");
}

const kept = (variables: ReadonlyMap<string, string>): string =>
  [...variables]
    .flatMap(([name, line]) => (name.startsWith(prefix) || passing.some((own) => own.test(line)) ? [] : [line]))
    .join("");

/** Of the commands whose place it remembers: those that it would not find there by itself. */
const misled = (text: string, path: readonly string[]): string =>
  text
    .split("\n")
    .filter((line) => {
      const [, file, name] = /^builtin hash -p (\S+) (\S+)$/.exec(line) ?? [];
      return line !== "" && !(file !== undefined && path.includes(dirname(file)) && basename(file) === name);
    })
    .join("\n");

/** What `declare -p` writes, by the names: a value may go over several lines, and look like the next variable. undefined where it is something else. */
function declared(text: string): Map<string, string> | undefined {
  const found = new Map<string, string>();
  const head = /declare -\S+ (\w+)/y;
  for (let at = 0; at < text.length; ) {
    head.lastIndex = at;
    const match = head.exec(text);
    if (match === null) return undefined;
    const end = endOfValue(text, head.lastIndex);
    if (end === undefined) return undefined;
    found.set(match[1] as string, text.slice(at, end));
    at = end;
  }
  return found;
}

/** Behind the line's end that is in no quotes. */
function endOfValue(text: string, from: number): number | undefined {
  let quote = "";
  for (let at = from; at < text.length; at++) {
    const one = text[at] as string;
    if (one === "\\" && quote !== "'") at++;
    else if (quote === "" && one === "\n") return at + 1;
    else if (quote === "" && one === "$" && text[at + 1] === "'") {
      quote = "$'";
      at++;
    } else if (quote === "" && (one === '"' || one === "'")) quote = one;
    else if (quote !== "" && one === quote.at(-1)) quote = "";
  }
  return undefined;
}
