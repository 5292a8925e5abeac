// What differs between two stored conversations, told from the names of their items alone.

import { itemNames } from "../store/contexts.ts";
import type { ObjectReader } from "../store/objects.ts";

export interface ContextDiff {
  /** Messages at the start that both have. */
  readonly shared: number;
  readonly removed: number;
  readonly added: number;
  readonly channels: readonly string[];
}

export function compareContexts(objects: ObjectReader, from: string, to: string): ContextDiff {
  const left = itemNames(objects, from);
  const right = itemNames(objects, to);
  let shared = 0;
  while (shared < left.messages.length && left.messages[shared] === right.messages[shared]) shared++;
  const names = new Set([...Object.keys(left.channels), ...Object.keys(right.channels)]);
  return {
    shared,
    removed: left.messages.length - shared,
    added: right.messages.length - shared,
    channels: [...names].filter((name) => left.channels[name] !== right.channels[name]).sort(),
  };
}
