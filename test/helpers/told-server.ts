// A model's server on loopback that answers what it is told to: also kinds of items, fields and errors that the suite's model server does not know.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type Json = Readonly<Record<string, unknown>>;

export interface Told {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: Json;
  /** Of a stream, in order. */
  readonly events?: readonly Json[];
}

export interface ToldServer {
  readonly baseUrl: string;
  /** Of the requests, in order. */
  readonly bodies: readonly Json[];
  close(): Promise<void>;
}

/** @param answer to the request with this number, from 0 */
export async function toldServer(answer: (body: Json, count: number) => Told): Promise<ToldServer> {
  const bodies: Json[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    const body = JSON.parse(Buffer.concat(parts).toString("utf8")) as Json;
    bodies.push(body);
    const { status = 200, headers = {}, json, events } = answer(body, bodies.length - 1);
    const type = events === undefined ? "application/json" : "text/event-stream";
    response.writeHead(status, { "content-type": type, ...headers });
    for (const event of events ?? []) {
      const name = typeof event.type === "string" ? `event: ${event.type}\n` : "";
      response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
    }
    response.end(events === undefined ? JSON.stringify(json) : "data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    bodies,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A reply of the Responses API with these items. */
export function toldResponse(body: Json, output: readonly Json[], id = "resp_1"): Told {
  const counts = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const response = {
    id,
    object: "response",
    created_at: 1,
    status: "completed",
    model: "told",
    output,
    usage: { ...counts, ...details },
  };
  if (body.stream !== true) return { json: response };
  const events: Json[] = [{ type: "response.created", response: { ...response, status: "in_progress", output: [] } }];
  for (const [index, item] of output.entries()) {
    const said = item.type === "message" ? ((item.content as Json[])[0] as Json) : undefined;
    const started = said === undefined ? item : { ...item, content: [], status: "in_progress" };
    events.push({ type: "response.output_item.added", output_index: index, item: started });
    if (said !== undefined) {
      const at = { item_id: item.id, output_index: index, content_index: 0 };
      events.push({ type: "response.content_part.added", ...at, part: { ...said, text: "" } });
      events.push({ type: "response.output_text.delta", ...at, delta: said.text });
      events.push({ type: "response.output_text.done", ...at, text: said.text });
      events.push({ type: "response.content_part.done", ...at, part: said });
    }
    events.push({ type: "response.output_item.done", output_index: index, item });
  }
  events.push({ type: "response.completed", response });
  return { events: events.map((event, at) => ({ ...event, sequence_number: at })) };
}

export const saidItem = (text: string, id = "msg_1"): Json => ({
  type: "message",
  id,
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});

export const calledItem = (name: string, args: Json, id: string): Json => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: JSON.stringify(args),
  status: "completed",
});

/** The chunks of a Chat Completions stream with these deltas. */
export function toldChunks(deltas: readonly Json[], finish = "stop"): Told {
  const chunk = (delta: Json, reason: string | null): Json => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "told",
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  return { events: [...deltas.map((delta) => chunk(delta, null)), chunk({}, finish)] };
}
