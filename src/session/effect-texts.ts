// What a model reads where a call with an effect was not made. Product text: short, concrete, with what to do next.
import type { Effect } from "./effect-types.ts";

type Consent = string | null | { readonly later: true };

const place = ({ checkpoint }: Effect): string => (checkpoint === null ? "" : ` at ${checkpoint}`);

function nextStep(consent: Consent, field: string): string {
  if (consent === null) return "This answer is final: go on without doing it again.";
  if (typeof consent === "string")
    return `to do it again call with ${field}: ${JSON.stringify(consent)} (it works once).`;
  return "Whether it may be done again is being asked: go on with something else, or send the same call again later.";
}

/** The call was made already, or an equivalent one. */
export function heldText(effect: Effect, consent: Consent, field: string): string {
  const what = effect.description;
  const next = nextStep(consent, field);
  const how = typeof consent === "string" ? `; ${next}` : `. ${next}`;
  if (effect.state === "completed") {
    const result = effect.result === null ? (effect.note ?? "no result was kept") : effect.result;
    return `Not run: already done${place(effect)}: ${what} -> ${result}${how}`;
  }
  if (effect.state === "failed") {
    return `Not run: ${what} was tried${place(effect)} and failed (${effect.note ?? "no reason was kept"}); whether it was done all the same is not known. Look first${how}`;
  }
  if (effect.state === "compensated") {
    return `Not run: ${what} was done${place(effect)} and has been taken back since${how}`;
  }
  if (effect.state === "uncompensated") {
    return `Not run: already done${place(effect)}, and it could not be taken back: ${what}${effect.note === null ? "" : ` (${effect.note})`}${how}`;
  }
  return `Not run: it is not known whether this is done already. ${what} was begun${place(effect)}, and no result was recorded. Look whether it was done, with means that change nothing${how}`;
}

/** Its one-time credential was used by another call. */
export function consumedText(effect: Effect, consent: Consent, field: string): string {
  const next = nextStep(consent, field);
  return `Not run: its one-time credential was used up${place(effect)} by ${effect.description}. Get a new one if this must be done${typeof consent === "string" ? `; ${next}` : `. ${next}`}`;
}

export const stillRunningText = (effect: Effect): string =>
  `Not run: this call runs already (${effect.description}). Wait for its result.`;

export const notCapturedText = (tool: string, checkpoint: string, reason: string | null): string =>
  `Not run: ${checkpoint}, the checkpoint before ${tool}, could not be captured (${reason ?? "unknown"}), so nothing could be taken back from there. ` +
  "Each step tries to capture again: take another step first, or mend what is named, and send the call again.";
