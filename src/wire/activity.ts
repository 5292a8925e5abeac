// What the model did in a piece of a conversation, as the list of checkpoints shows it.
import type { Format, Item } from "./format.ts";

export interface WireAction {
  readonly tool: string;
  readonly input: string;
  readonly output: string;
  readonly failed: boolean;
}

/** Its words, its calls and their results. */
export function activityIn(
  format: Format,
  items: readonly Item[],
): { readonly said: string; readonly actions: readonly WireAction[] } {
  const results = new Map<string, Item>();
  for (const item of items) {
    const id = format.answers(item);
    if (id !== undefined) results.set(id, item);
  }
  const said: string[] = [];
  const actions: WireAction[] = [];
  for (const item of items) {
    if (format.speaker(item) !== "model") continue;
    const text = format.text(item).trim();
    if (text !== "") said.push(text);
    for (const call of format.calls(item)) {
      const result = results.get(call.id);
      actions.push({
        tool: call.name,
        input: call.arguments,
        output: result === undefined ? "" : format.text(result),
        failed: result !== undefined && format.failed(result),
      });
    }
  }
  return { said: said.join("\n"), actions };
}
