// Arguments of calls as one text for equal values: keys sorted, and nothing that JSON cannot hold.
import { RewindError } from "../errors.ts";

/** @throws BAD_ARGUMENT for what is not JSON */
export function canonical(value: unknown, what: string): string {
  try {
    const plain = JSON.stringify(value);
    if (plain === undefined) return "null";
    return JSON.stringify(sorted(JSON.parse(plain)));
  } catch (cause) {
    throw new RewindError("BAD_ARGUMENT", `${what} is not JSON (a bigint, a circle, or what a toJSON threw).`, {
      hint: "Give plain values.",
      cause,
    });
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return Object.fromEntries(entries.map(([key, one]) => [key, sorted(one)]));
}

/** The fields that tell whether two calls ask for the same, each named by its path ("to", "message.id"). Undefined when the arguments have none of them. */
export function keyOf(args: unknown, fields: readonly string[]): string | undefined {
  const values = fields.map((field) => at(args, field.split(".")));
  if (values.every((value) => value === undefined)) return undefined;
  return canonical(
    values.map((value) => value ?? null),
    "A key field",
  );
}

function at(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const step of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, step)) return undefined;
    found = (found as Record<string, unknown>)[step];
  }
  return found;
}
