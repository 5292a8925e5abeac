// Which objects can be reached from others: what gc keeps (F-34).
import type { Breathe } from "../breathe.ts";
import { RewindError } from "../errors.ts";
import type { Hash, ObjectReader } from "./objects.ts";

/**
 * How an object is read by what leads to it. The same bytes may be reached as two kinds: a file may hold what looks like a tree, so that having seen an
 * object as one kind says nothing of what it leads to as another.
 */
export interface Kind {
  /** One bit for each kind. */
  readonly bit: number;
  /** Null for bytes that lead nowhere. */
  readonly edges: ((bytes: Buffer, visit: (kind: Kind, hash: Hash) => void) => void) | null;
}

export const kindBit = {
  content: 1,
  snapshot: 2,
  tree: 4,
  blocks: 8,
  context: 16,
  messages: 32,
  channels: 64,
} as const;

export const content: Kind = { bit: kindBit.content, edges: null };

/** What was seen so far. */
export interface Seen {
  /** True the first time that the object is seen as this kind. */
  add(hash: Hash, kind: Kind): boolean;
}

/**
 * Marks what `kind` and `hash` lead to; what was seen before is not walked again. What an object led to that is not in the store can be reached by nobody.
 * @throws STORE_CORRUPT where an object is there and cannot be read
 */
export async function walk(objects: ObjectReader, seen: Seen, kind: Kind, hash: Hash, breathe: Breathe): Promise<void> {
  const stack: { kind: Kind; hash: Hash }[] = [];
  const visit = (to: Kind, name: Hash): void => {
    if (seen.add(name, to) && to.edges !== null) stack.push({ kind: to, hash: name });
  };
  visit(kind, hash);
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (objects.has(next.hash)) edgesOf(next.kind, next.hash, objects.get(next.hash), visit);
    await breathe();
  }
}

function edgesOf(kind: Kind, hash: Hash, bytes: Buffer, visit: (kind: Kind, hash: Hash) => void): void {
  try {
    kind.edges?.(bytes, visit);
  } catch (cause) {
    throw new RewindError("STORE_CORRUPT", `Object ${hash.toString("hex")} is not what leads to it says.`, {
      hint: "Run `agentrewind verify` to see which checkpoints need it.",
      details: { object: hash.toString("hex") },
      cause,
    });
  }
}
