// What a plan is made from.
import type { Breathe } from "../../breathe.ts";
import type { ObjectReader } from "../../store/objects.ts";
import type { Entry } from "./entry.ts";
import type { Immovable } from "./immovable.ts";
import type { RawPath } from "./names.ts";
import type { Difference } from "./tree.ts";

/** Whether a restore of some paths concerns a path: it or what is above is asked for (in), something below it is (above), or neither. */
export type Scope = (path: RawPath) => "in" | "above" | "out";

export interface PlanInput {
  readonly objects: ObjectReader;
  readonly current: Entry;
  readonly target: Entry;
  /** Of the current tree (scan.ts). */
  readonly groups: ReadonlyMap<RawPath, readonly RawPath[]>;
  readonly immovable: Immovable;
  /** Paths that stay as they are. */
  readonly kept: (path: RawPath) => boolean;
  /** Directories that hold a kept path. */
  readonly holdsKept: (path: RawPath) => boolean;
  /** Undefined: everything. */
  readonly scope: Scope | undefined;
  /** The staging folder. */
  readonly stage: RawPath;
  readonly breathe: Breathe;
  /** Is told each difference that is to go, and each path that would be changed if it were not kept. */
  readonly onDifference: (difference: Difference) => void;
  readonly onKept: (path: RawPath) => void;
}
