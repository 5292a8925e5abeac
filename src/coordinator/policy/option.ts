// The option `capture` of openRewind.
import { z } from "zod";
import { type Declarations, declaredClasses, type PolicyClass } from "./actions.ts";
import { byClass } from "./by-class.ts";
import { byFunction, type CaptureFunction } from "./by-function.ts";
import { effects, every, explicit } from "./by-name.ts";
import { actionClasses } from "./commands/action-classes.ts";
import { type Policy, policyOf } from "./policy.ts";

export interface CaptureByClass {
  /** Captured when a reply holds a call of such a class, before its tools run. */
  readonly before?: readonly PolicyClass[] | undefined;
  /** Captured at the beginning of the turn behind a call of such a class. */
  readonly after?: readonly PolicyClass[] | undefined;
  /** By name: what tools do of which nothing here knows. Others of these count as "unknown", and unknown as every class. */
  readonly tools?: Readonly<Record<string, PolicyClass | readonly PolicyClass[]>> | undefined;
}

/** When a pair is captured. */
export type CaptureOption = "every" | "effects" | "explicit" | CaptureByClass | CaptureFunction;

const policyClass = z.enum([...actionClasses, ...declaredClasses]);
const classes = z.array(policyClass).readonly();

const byClasses = z
  .strictObject({
    before: classes.optional(),
    after: classes.optional(),
    tools: z.record(z.string().min(1), z.union([policyClass, z.array(policyClass).min(1).readonly()])).optional(),
  })
  .refine(({ before = [], after = [] }) => before.length + after.length > 0, {
    message: 'needs a class in "before" or "after"',
  });

export const captureOption = z
  .union([
    z.enum(["every", "effects", "explicit"]),
    byClasses,
    z.custom<CaptureFunction>((value) => typeof value === "function"),
  ])
  .default("every");

const named = { every, effects, explicit } as const;

/** @param declared what `effects` and `destructive` say of a tool */
export function capturePolicy(option: CaptureOption, declared: Declarations["declared"]): Policy {
  if (typeof option === "string") return policyOf(named[option], { tools: {}, declared });
  if (typeof option === "function") return policyOf(byFunction(option), { tools: {}, declared });
  return policyOf(byClass(option), { tools: option.tools ?? {}, declared });
}
