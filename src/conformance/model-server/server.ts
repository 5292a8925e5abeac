// A real OpenAI-compatible HTTP server on loopback whose model is a function; as strict as a provider, as slow as asked.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { checkRequest } from "./check.ts";
import { answer, chunks, completion } from "./reply.ts";
import { readResponses, responseEvents, responseOf, type Stored } from "./responses.ts";
import type { ChatRequest, Reply } from "./wire.ts";

export interface ModelServerOptions {
  /** The model: answers from the request alone. What it throws becomes a 500. */
  readonly decide: (request: ChatRequest) => Reply | Promise<Reply>;
  /** How long a reply takes; a stream spreads it over its chunks. Default 300. */
  readonly latencyMs?: number;
  /** The name that GET /v1/models lists. Requests may name any model. Default "scripted". */
  readonly model?: string;
}

export interface ModelServer {
  /** What goes into a client's `baseURL`. */
  readonly baseUrl: string;
  /** All accepted requests in order, as Chat Completions has them. */
  readonly requests: readonly ChatRequest[];
  /** What was refused or failed, in order; a well-behaved client leaves it empty. */
  readonly errors: readonly string[];
  close(): Promise<void>;
}

const largestBody = 64 * 1024 * 1024;

class HttpError extends Error {
  readonly status: number;
  readonly body: object;

  constructor(status: number, error: { message: string; type: string; param?: string | null; code?: string | null }) {
    super(error.message);
    this.status = status;
    this.body = { error: { param: null, code: null, ...error } };
  }
}

export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const { decide, latencyMs = 300, model = "scripted" } = options;
  const requests: ChatRequest[] = [];
  const errors: string[] = [];

  async function chat(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const checked = checkRequest(await readJson(incoming));
    if ("refused" in checked) throw new HttpError(400, checked.refused);
    const { request } = checked;
    requests.push(request);
    const said = answer(request, await decide(request));
    if (request.stream === true) return stream(response, chunks(request, said), latencyMs);
    await sleep(latencyMs);
    sendJson(response, 200, completion(said));
  }

  const stored: Stored = new Map();

  async function respond(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const read = readResponses(await readJson(incoming), stored);
    if ("refused" in read) throw new HttpError(read.status, read.refused);
    requests.push(read.request);
    const said = responseOf(read.asked, await decide(read.request));
    if (read.asked.store !== false) stored.set(said.id, [...read.items, ...said.output]);
    if (read.asked.stream === true) return stream(response, responseEvents(said), latencyMs);
    await sleep(latencyMs);
    sendJson(response, 200, said);
  }

  async function route(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(incoming.url ?? "/", "http://127.0.0.1");
    if (!/^Bearer \S+$/.test(incoming.headers.authorization ?? "")) {
      throw new HttpError(401, { message: "No API key was given.", type: "invalid_request_error" });
    }
    if (incoming.method === "POST" && pathname === "/v1/chat/completions") return chat(incoming, response);
    if (incoming.method === "POST" && pathname === "/v1/responses") return respond(incoming, response);
    if (incoming.method === "GET" && pathname === "/v1/models") {
      const entry = { id: model, object: "model", created: 0, owned_by: "agentrewind-examples" };
      return sendJson(response, 200, { object: "list", data: [entry] });
    }
    throw new HttpError(404, { message: `No route ${incoming.method} ${pathname}.`, type: "invalid_request_error" });
  }

  const server = createServer((incoming, response) => {
    route(incoming, response).catch((error: unknown) => {
      const known =
        error instanceof HttpError ? error : new HttpError(500, { message: String(error), type: "server_error" });
      errors.push(known.message);
      if (response.headersSent) response.destroy();
      else sendJson(response, known.status, known.body);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    errors,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)));
        server.closeAllConnections();
      }),
  };
}

async function readJson(incoming: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of incoming as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > largestBody)
      throw new HttpError(413, { message: "The body is too large.", type: "invalid_request_error" });
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new HttpError(400, { message: "The body is not valid JSON.", type: "invalid_request_error" });
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function stream(response: ServerResponse, items: readonly object[], latencyMs: number): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  response.flushHeaders();
  const start = performance.now();
  for (const [index, item] of items.entries()) {
    const due = (latencyMs * (index + 1)) / items.length - (performance.now() - start);
    if (due >= 1) await sleep(due);
    if (response.destroyed) return;
    const { type } = item as { readonly type?: string };
    response.write(`${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(item)}\n\n`);
  }
  response.end("data: [DONE]\n\n");
}
