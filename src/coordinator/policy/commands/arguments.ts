// Small questions about the arguments of a command.
import type { Words } from "./action-classes.ts";

/** Arguments that are no options, in order. `valued`: options whose value is the next word. */
export function operands(args: Words, valued: readonly string[] = []): Words {
  const found: (string | undefined)[] = [];
  let rest = false;
  for (let at = 0; at < args.length; at++) {
    const word = args[at];
    if (rest || word === undefined || word === "-" || !word.startsWith("-")) found.push(word);
    else if (word === "--") rest = true;
    else if (valued.includes(word)) at++;
  }
  return found;
}

/** Whether an option is given: a long one whole or with a value, a short one also among others ("-rf"). */
export function hasOption(args: Words, ...names: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some(
    (word) =>
      word !== undefined &&
      names.some((name) => {
        if (name.startsWith("--") || name.length > 2) return word === name || word.startsWith(`${name}=`);
        return word === name || (/^-[A-Za-z]+$/.test(word) && word.includes(name.slice(1)));
      }),
  );
}

/** The values of an option, also as "--name=value" and, of a short one, "-nvalue"; undefined where only the shell knows it. */
export function optionValues(args: Words, ...names: readonly string[]): Words {
  const found: (string | undefined)[] = [];
  for (const [at, word] of args.entries()) {
    if (word === undefined) continue;
    for (const name of names) {
      if (word === name) found.push(args[at + 1]);
      else if (name.startsWith("--") && word.startsWith(`${name}=`)) found.push(word.slice(name.length + 1));
      else if (!name.startsWith("--") && word.startsWith(name) && word.length > name.length && name.length === 2)
        found.push(word.slice(2));
    }
  }
  return found;
}

/** Asks only what it is, or how it is used. */
export const asksForHelp = (args: Words): boolean =>
  args.some((word) => word === "--help" || word === "--version") ||
  (args.length === 1 && ["-h", "-V", "-v", "-version", "version", "help"].includes(args[0] ?? ""));

/** Some words are known to the running shell only. */
export const isDynamic = (args: Words): boolean => args.includes(undefined);
