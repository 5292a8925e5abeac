// Who may allow that something is done once more: asked when a call is held, and never waited for.
import { RewindError } from "../errors.ts";
import type { EffectRow } from "../store/effects.ts";
import type { SessionDeps } from "./deps.ts";
import type { EffectOptions } from "./effect-rules.ts";
import type { Effect } from "./effect-types.ts";

/** How long a handler that gives a promise is waited for; what it gives later counts when the call comes again. */
const patienceMs = 1_000;
const tokenLimit = 200;

/** Effects for which a handler has been asked and has not answered yet. */
const asking = new WeakMap<SessionDeps, Map<number, Promise<string | null>>>();

/** The token with which the call may be made once more; null when there is none; "later" when nobody has answered yet. */
export async function askConsent(
  deps: SessionDeps,
  row: EffectRow,
  effect: Effect,
): Promise<string | null | { later: true }> {
  const { onConsent } = deps.effects;
  if (row.consent !== null) return row.consent;
  if (onConsent === undefined) return null;
  const open = asking.get(deps) ?? new Map<number, Promise<string | null>>();
  asking.set(deps, open);
  let asked = open.get(row.id);
  if (asked === undefined) {
    asked = answerOf(onConsent, effect).then((token) => keep(deps, row.id, token));
    open.set(row.id, asked);
    const forget = (): void => {
      open.delete(row.id);
    };
    asked.then(forget, forget);
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<{ later: true }>((resolve) => {
    timer = setTimeout(() => resolve({ later: true }), patienceMs);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A handler that fails allows nothing. */
async function answerOf(onConsent: NonNullable<EffectOptions["onConsent"]>, effect: Effect): Promise<unknown> {
  try {
    return await onConsent(effect);
  } catch (error) {
    process.emitWarning(`onConsent failed: ${(error as Error)?.message ?? String(error)}`, "AgentRewindWarning");
    return null;
  }
}

function keep({ catalog, assertOpen }: SessionDeps, effect: number, token: unknown): string | null {
  if (token === undefined || token === null) return null;
  if (typeof token !== "string" || token.trim() === "" || token.length > tokenLimit) {
    throw new RewindError("BAD_ARGUMENT", "onConsent: what it returned is no token.", {
      hint: `Return a text of at most ${tokenLimit} characters that nobody can guess, or nothing.`,
    });
  }
  assertOpen();
  catalog.setConsent(effect, token);
  return token;
}
