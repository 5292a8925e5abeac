// Model-API conversations as data.
export { activityIn, type WireAction } from "./activity.ts";
export { type ApartParts, formatApart } from "./apart.ts";
export { boundariesOf, newestAnchor, type WireBoundary } from "./boundaries.ts";
export { chatCompletions } from "./chat.ts";
export { canonical, digest, digestOfStrings } from "./digest.ts";
export { type Call, type Format, type Item, type Speaker, textOfContent } from "./format.ts";
export {
  type CallerEntry,
  callerEntry,
  type Entry,
  type Followed,
  follow,
  type History,
  type HistoryNotes,
  historyOf,
  isShown,
  type Line,
  notesOf,
  type OwnEntry,
  returnTo,
  shownItems,
  shownSince,
  type Told,
} from "./history.ts";
export { paired } from "./pairing.ts";
export { remembered } from "./remembered.ts";
export { responses } from "./responses.ts";
