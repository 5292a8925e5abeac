// The calls of the reply that the caller has in its hands: its tools find out by them which call they carry out.
import { type Call, canonical, type Format, type Item } from "../wire/index.ts";

export interface OpenReply {
  /** Of the request that it answers. */
  readonly name: string;
  /** The boundary at which the model decided. */
  readonly anchor: string | null;
  /** The call of this tool with these arguments that was not claimed yet. */
  claim(tool: string, args: unknown): Call | undefined;
}

export function openReply(
  format: Format,
  name: string,
  anchor: string | null,
  items: readonly Item[],
  dropped: ReadonlySet<string>,
): OpenReply {
  const left = items.flatMap((item) => format.calls(item)).filter(({ id }) => !dropped.has(id));
  return {
    name,
    anchor,
    claim(tool, args) {
      const wanted = canonical(args ?? {});
      const at = left.findIndex((call) => call.name === tool && canonical(parse(call.arguments)) === wanted);
      return at < 0 ? undefined : left.splice(at, 1)[0];
    },
  };
}

function parse(text: string): unknown {
  try {
    return text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    return text;
  }
}
