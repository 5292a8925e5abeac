// Server-sent events, as OpenAI's APIs use them.
import type { Json, StreamEvent } from "./api.ts";

/** Events of a body; what is not JSON, as the last "[DONE]", is left out. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of body as unknown as AsyncIterable<Uint8Array>) {
    rest += decoder.decode(part, { stream: true });
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parse(block);
      if (event !== undefined) yield event;
    }
  }
  const event = parse(rest + decoder.decode());
  if (event !== undefined) yield event;
}

function parse(block: string): StreamEvent | undefined {
  let name: string | undefined;
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) name = line.slice("event:".length).trim();
    if (line.startsWith("data:")) data.push(line.slice("data:".length).replace(/^ /, ""));
  }
  if (data.length === 0) return undefined;
  try {
    return { ...(name === undefined ? {} : { event: name }), data: JSON.parse(data.join("\n")) as Json };
  } catch {
    return undefined;
  }
}

const encoder = new TextEncoder();

export const encodeEvent = ({ event, data }: StreamEvent): Uint8Array =>
  encoder.encode(`${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`);

export const encodeText = (text: string): Uint8Array => encoder.encode(text);
