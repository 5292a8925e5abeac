// The whole result of a run, as it is written.
import type { Arm } from "./arm.ts";
import type { SubjectResult } from "./figures.ts";
import { type Goal, judge } from "./goals.ts";
import type { Machine } from "./machine.ts";

export interface Result {
  readonly command: string;
  readonly date: string;
  readonly machine: Machine & { readonly loadAfter: number };
  readonly versions: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly quick: boolean;
  readonly conditions: readonly string[];
  readonly arms: readonly {
    readonly name: string;
    readonly title: string;
    readonly about: string;
    readonly missing: string | null;
  }[];
  readonly subjects: readonly SubjectResult[];
  readonly goals: readonly Goal[];
}

export function makeResult(parts: Omit<Result, "goals" | "arms"> & { readonly arms: readonly Arm[] }): Result {
  return {
    ...parts,
    arms: parts.arms.map(({ name, title, about, missing }) => ({ name, title, about, missing: missing ?? null })),
    goals: judge(parts.subjects),
  };
}
