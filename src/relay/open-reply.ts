// The calls of the reply that the caller has in its hands: its tools find out by them which call they carry out.
import { type Call, canonical, type Format, type Item } from "../wire/index.ts";

export interface OpenReply {
  /** Of the request that it answers. */
  readonly name: string;
  /** The boundary at which the model decided. */
  readonly anchor: string | null;
  /**
   * The call of this tool that was not claimed yet: the one with this id, else with these arguments, else the first. Between the model and a tool arguments change:
   * defaults come in, unknown ones go.
   */
  claim(tool: string, args: unknown, id?: string): Call | undefined;
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
    claim(tool, args, id) {
      const wanted = canonical((typeof args === "string" ? parse(args) : args) ?? {});
      const own = left.filter((call) => call.name === tool);
      const call =
        id === undefined
          ? (own.find((one) => canonical(parse(one.arguments)) === wanted) ?? own[0])
          : own.find((one) => one.id === id);
      if (call !== undefined) left.splice(left.indexOf(call), 1);
      return call;
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
