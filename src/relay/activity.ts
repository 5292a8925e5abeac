// What was done since the head's boundary.
import type { Thread } from "../session/thread.ts";
import type { Activity } from "../session/types.ts";
import { activityIn, boundariesOf, type Format, type History, shownItems } from "../wire/index.ts";

export function activityOf(format: Format, thread: Thread, history: History): Activity {
  const items = shownItems(history);
  const anchor = thread.head === null ? null : thread.get(thread.head).anchor;
  let behind = -1;
  let passed = 0;
  for (const boundary of anchor === null ? [] : boundariesOf(format, history)) {
    if (boundary.anchor === anchor) {
      behind = passed;
      break;
    }
    passed++;
  }
  const from =
    behind < 0
      ? Math.max(
          0,
          items.findLastIndex((item) => format.speaker(item) === "model"),
        )
      : items.length - behind;
  return activityIn(format, items.slice(from));
}
