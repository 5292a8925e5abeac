// Short names for JSON values.
import { createHash } from "node:crypto";

/** 16 characters; equal for values whose JSON is equal but for the order of keys. */
export const digest = (value: unknown): string => nameOfText(canonical(value));

/** The digest of what is strings, null and arrays of these alone: much faster for long ones. */
export const digestOfStrings = (value: Strings): string => nameOfText(JSON.stringify(value));

type Strings = readonly (string | null | Strings)[];

const nameOfText = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 16);

/** JSON with the keys of every object in order; a key without a value counts as absent. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
