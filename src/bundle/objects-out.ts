// What objects lead to, each once and behind everything that it leads to itself: so a reader has seen what a record names before it.
import type { Breathe } from "../breathe.ts";
import type { Hash, ObjectReader } from "../store/objects.ts";
import type { Kind } from "../store/reach.ts";
import type { ObjectTable } from "./object-table.ts";

export interface FoundObject {
  readonly kind: Kind;
  readonly hash: Hash;
  readonly bytes: Buffer;
}

interface Step {
  readonly kind: Kind;
  readonly hash: Hash;
  /** Once what it leads to is on the stack above it. */
  bytes?: Buffer;
}

/** What `met` has already is left out. @throws STORE_CORRUPT where something is missing or damaged */
export async function* reachedFrom(
  objects: ObjectReader,
  met: ObjectTable,
  kind: Kind,
  hash: Hash,
  breathe: Breathe,
): AsyncGenerator<FoundObject> {
  const stack: Step[] = [{ kind, hash }];
  for (let step = stack.at(-1); step !== undefined; step = stack.at(-1)) {
    if (step.bytes === undefined && met.get(step.kind.bit, step.hash) !== undefined) {
      stack.pop();
      continue;
    }
    const bytes = step.bytes ?? objects.get(step.hash);
    if (step.bytes === undefined && step.kind.edges !== null) {
      step.bytes = bytes;
      step.kind.edges(bytes, (to, name) => stack.push({ kind: to, hash: name }));
      continue;
    }
    stack.pop();
    met.add(step.kind.bit, step.hash, 0);
    yield { kind: step.kind, hash: step.hash, bytes };
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
}
