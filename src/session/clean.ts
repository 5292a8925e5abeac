// What is shown to models and people is bounded, and masked before it is stored.
import { RewindError } from "../errors.ts";
import { maskSecrets, shorten } from "./mask.ts";
import type { Activity } from "./types.ts";

const textLimit = 400;
const labelLimit = 120;

export function cleanActivity(activity: Activity): Activity {
  const clean = (text: string): string => shorten(maskSecrets(text), textLimit);
  return {
    said: clean(activity.said),
    actions: activity.actions.map((action) => ({
      ...action,
      input: clean(action.input),
      output: clean(action.output),
    })),
  };
}

/** @throws BAD_ARGUMENT */
export function cleanLabel(label: string): string {
  const clean = shorten(maskSecrets(label.replace(/\s+/g, " ")), labelLimit);
  if (clean !== "") return clean;
  throw new RewindError("BAD_ARGUMENT", "The label is empty.", { hint: "Give a short name for this point." });
}
