// What is declared of tools that act outside of the environment, and what a rewind may do about them.
import { z } from "zod";
import type { Effect, EffectClass, OnRepeat } from "./effect-types.ts";

/** Arguments as the model gave them: plain JSON. */
// biome-ignore lint/suspicious/noExplicitAny: whoever declares a tool knows its arguments
export type ToolArguments = any;

/** A tool that acts outside of the environment: what a rewind cannot take back. */
export interface EffectDefinition {
  /**
   * "idempotent": again is the same as once, so it is not held unless `onRepeat` says so. "reversible": ordinary means undo it. "compensable": `compensate`
   * makes up for it. "irreversible": nothing does; it waits until the checkpoint before it is on disk.
   */
  readonly class: EffectClass;
  /** One line for the model and for people: "mail to ann@x.org: Invoice 7". Default: the tool and its arguments, shortened. */
  describe?(args: ToolArguments): string;
  /** Do two calls ask for the same? Default: their `key` fields, else all of their arguments. */
  equals?(a: ToolArguments, b: ToolArguments): boolean;
  /** Fields that tell whether two calls ask for the same, by path: ["to", "invoice.id"]. Calls that have none of them are compared whole. */
  readonly key?: readonly string[];
  /** Makes up for a call that was done. Runs before the files go back, newest first. @param result what the call returned, as it was recorded */
  compensate?(args: ToolArguments, result: unknown): unknown;
  /** One-time credentials that a call uses up (a token, a confirmation code). A call that uses one again is held. */
  consumes?(args: ToolArguments): readonly (string | null | undefined)[];
  /** What happens to an equivalent call behind a rewind. Default: the option `onRepeat`. */
  readonly onRepeat?: OnRepeat;
  /** What it means that the tool threw. "not-done" (default): it may be called again. "unknown": it counts as perhaps done. */
  readonly onFailure?: "not-done" | "unknown";
  /** The argument in which the model gives the token of a consent. Default "confirm". It is taken out before the tool runs. */
  readonly confirm?: string;
}

export type NetworkEffects = "note" | "hold";

export interface EffectOptions {
  /**
   * By the names of tools. `network` says what becomes of connections that commands make to elsewhere, where those are seen (a sandbox with `inspector: "ebpf"`): "note" (the default),
   * a rewind names them; "hold", it may not leave those to other machines behind.
   */
  readonly effects?: Readonly<Record<string, EffectDefinition | NetworkEffects>>;
  /** What happens to an equivalent call behind a rewind: its recorded result again, held, or done again. Default "hold". */
  readonly onRepeat?: OnRepeat;
  /**
   * Asked when a call is held. Returns a token with which the model may make that call once more, or nothing: then the answer is final. A promise is waited
   * for a second; what it gives later is used when the model asks again. Nothing blocks. One that fails allows nothing, with a warning.
   */
  readonly onConsent?: (effect: Effect) => string | undefined | Promise<string | undefined>;
  /** Whether a rewind runs the `compensate` of what it abandons. Default "never". */
  readonly compensate?: "never" | "always" | ((effect: Effect) => boolean);
  /** Which effects a rewind may leave behind: all, those of some classes, or as a function says. Default "all". Undo is not asked. */
  readonly cross?: "all" | readonly EffectClass[] | ((effect: Effect) => boolean);
  /** Names of tools that destroy what no capture holds: they do not run behind a checkpoint that could not be captured. */
  readonly destructive?: readonly string[];
}

const fn = <T>() => z.custom<T>((value) => typeof value === "function", "must be a function");
const effectClass = z.enum(["idempotent", "reversible", "compensable", "irreversible"]);
const onRepeat = z.enum(["replay", "hold", "allow"]);

const definition = z
  .strictObject({
    class: effectClass,
    describe: fn<NonNullable<EffectDefinition["describe"]>>().optional(),
    equals: fn<NonNullable<EffectDefinition["equals"]>>().optional(),
    key: z.array(z.string().min(1)).min(1).readonly().optional(),
    compensate: fn<NonNullable<EffectDefinition["compensate"]>>().optional(),
    consumes: fn<NonNullable<EffectDefinition["consumes"]>>().optional(),
    onRepeat: onRepeat.optional(),
    onFailure: z.enum(["not-done", "unknown"]).optional(),
    confirm: z.string().min(1).optional(),
  })
  .refine((one) => one.class !== "compensable" || one.compensate !== undefined, {
    path: ["compensate"],
    message: 'class "compensable" needs it',
  });

/** Each by itself: the message names the field that is wrong. */
function declared(
  given: Readonly<Record<string, unknown>>,
  context: z.RefinementCtx,
): Record<string, z.infer<typeof definition> | NetworkEffects> {
  const found: Record<string, z.infer<typeof definition> | NetworkEffects> = {};
  for (const [name, value] of Object.entries(given)) {
    const isNetwork = name === "network" && typeof value === "string";
    const parsed = isNetwork ? z.enum(["note", "hold"]).safeParse(value) : definition.safeParse(value);
    if (parsed.success) found[name] = parsed.data;
    for (const { message, path } of parsed.error?.issues ?? [])
      context.addIssue({ code: "custom", message, path: [name, ...path] });
  }
  return found;
}

/** Those of `EffectOptions`, as part of the options of `openRewind`. */
export const effectOptions = {
  effects: z.record(z.string().min(1), z.unknown()).transform(declared).default({}),
  onRepeat: onRepeat.optional(),
  onConsent: fn<NonNullable<EffectOptions["onConsent"]>>().optional(),
  compensate: z.union([z.enum(["never", "always"]), fn<(effect: Effect) => boolean>()]).default("never"),
  cross: z.union([z.enum(["all"]), z.array(effectClass).readonly(), fn<(effect: Effect) => boolean>()]).default("all"),
  destructive: z.array(z.string().min(1)).readonly().default([]),
};

type Given = z.infer<z.ZodObject<typeof effectOptions>>;
type Declared = z.infer<typeof definition>;

/** The options with their defaults, as the session asks them. */
export interface EffectRules {
  of(tool: string): Declared | undefined;
  isDestructive(tool: string): boolean;
  /** What `effects` and `destructive` say of it. */
  declared(tool: string): readonly (EffectClass | "destructive")[];
  onRepeat(tool: string): OnRepeat;
  /** undefined where it was not said. */
  readonly network: NetworkEffects | undefined;
  readonly onConsent: Given["onConsent"];
  mayCompensate(effect: Effect): boolean;
  mayCross(effect: Effect): boolean;
}

export function effectRules(given: Given): EffectRules {
  const { effects, compensate, cross } = given;
  const said = (name: string) => (Object.hasOwn(effects, name) ? effects[name] : undefined);
  const of = (tool: string): Declared | undefined => {
    const found = said(tool);
    return typeof found === "string" ? undefined : found;
  };
  const network = said("network");
  const destructive = new Set(given.destructive);
  return {
    of,
    isDestructive: (tool) => destructive.has(tool),
    declared: (tool) => [of(tool)?.class ?? [], destructive.has(tool) ? ("destructive" as const) : []].flat(),
    onRepeat: (tool) => of(tool)?.onRepeat ?? given.onRepeat ?? (of(tool)?.class === "idempotent" ? "allow" : "hold"),
    network: typeof network === "string" ? network : undefined,
    onConsent: given.onConsent,
    mayCompensate: (effect) => (typeof compensate === "function" ? compensate(effect) : compensate === "always"),
    mayCross: (effect) =>
      typeof cross === "function" ? cross(effect) : cross === "all" || cross.includes(effect.class),
  };
}

/** Where nothing is declared: readers, and commands that no agent's program runs. */
export const noEffectRules: EffectRules = effectRules({
  effects: {},
  compensate: "never",
  cross: "all",
  destructive: [],
});
