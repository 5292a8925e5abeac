// Short names for JSON values.
import { createHash } from "node:crypto";

/** 16 characters; equal for values whose JSON is equal but for the order of keys. */
export function digest(value: unknown): string {
  return createHash("sha256").update(canonical(value)).digest("base64url").slice(0, 16);
}

/** JSON with the keys of every object in order; a key without a value counts as absent. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
