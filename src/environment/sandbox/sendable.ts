// What of a command may be sent into a sandbox, and in which form.
import { createHash } from "node:crypto";
import { RewindError } from "../../errors.ts";
import type { ExecOptions } from "../environment.ts";

/** Names are the caller's: most are a file's name as they are. */
export const fileName = (name: string): string =>
  /^[\w-]{1,64}$/.test(name) ? name : createHash("sha256").update(name).digest("hex");

/** The owner's own, and these. */
export const variables = (more: Readonly<Record<string, string>> | undefined): Record<string, string> => {
  const own = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...Object.fromEntries(own), ...more };
};

/** A NUL ends a string for the kernel: what is behind it would be a word or a variable of its own. @throws BAD_ARGUMENT */
export function requireSendable(command: string | readonly string[], env: ExecOptions["env"] = {}): void {
  const words = typeof command === "string" ? [command] : command;
  if ([...words, ...Object.entries(env).flat()].some((one) => one.includes("\0"))) {
    throw new RewindError("BAD_ARGUMENT", "A command or a variable holds a NUL character.", {
      hint: "Give binary data as `input`.",
    });
  }
  const bad = Object.keys(env).find((name) => name === "" || name.includes("="));
  if (bad !== undefined) {
    throw new RewindError("BAD_ARGUMENT", `"${bad}" is no name for a variable.`, {
      hint: "Use a name without an equals sign.",
    });
  }
}
