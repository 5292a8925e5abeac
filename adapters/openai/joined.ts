// Deltas put together to what the API gives without a stream. Fields that nobody here knows are kept.
import type { Json } from "./api.ts";

export type Joining = Record<string, unknown>;

/** Strings that come in pieces. Any other value is whole when it comes. */
const inPieces: ReadonlySet<string> = new Set([
  "arguments",
  "content",
  "data",
  "input",
  "name",
  "reasoning",
  "reasoning_content",
  "refusal",
  "summary",
  "text",
  "transcript",
]);

/** What a message's delta repeats. */
const repeated: ReadonlySet<string> = new Set(["role", "id", "type", "name"]);

/** Adds a delta. @param own the delta of a message: all its strings come in pieces */
export function join(into: Joining, delta: Json, own = false): Joining {
  for (const [name, value] of Object.entries(delta)) {
    const before = into[name];
    if (value === undefined || value === "" || value === null) into[name] = before ?? value;
    else if (typeof value === "string" && typeof before === "string") {
      // Some servers give a name in each of its deltas.
      const whole = name === "name" && before === value;
      const joins = own ? !repeated.has(name) : inPieces.has(name);
      into[name] = joins && !whole ? before + value : value;
    } else if (Array.isArray(value)) into[name] = joinList(Array.isArray(before) ? before : [], value);
    else if (isObject(value)) into[name] = join(isObject(before) ? (before as Joining) : {}, value);
    else into[name] = value;
  }
  return into;
}

/** Parts with an index are pieces of that part. Of the others some servers give all each time. */
function joinList(into: unknown[], parts: readonly unknown[]): unknown[] {
  for (const part of parts) {
    const index = isObject(part) ? part.index : undefined;
    const before = into.find((one) =>
      typeof index === "number" ? isObject(one) && one.index === index : same(one, part),
    );
    if (before === undefined) into.push(isObject(part) ? join({}, part) : part);
    else if (typeof index === "number") join(before as Joining, part as Json);
  }
  return into;
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Probabilities of words: each delta has those of its own. */
export function joinProbabilities(before: Json | null, delta: Json): Json {
  const joined: Joining = { ...before };
  for (const [name, value] of Object.entries(delta)) {
    const known = joined[name];
    joined[name] = Array.isArray(value) && Array.isArray(known) ? [...known, ...value] : (value ?? known ?? null);
  }
  return joined;
}
