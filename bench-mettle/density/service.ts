// The server beside which a service-heavy agent works: it sweeps what has expired ten times a second, and mostly there is nothing.
import { background, bash, type Call, write } from "../crash/traces/trace.ts";

export const servicePort = 8_190;
const folder = "service";

const program = `const counts = {}, carts = new Map();
setInterval(() => {
  for (const [name, until] of carts) if (until < Date.now()) carts.delete(name);
}, 100);
require("node:http").createServer((request, answer) => {
  const [, verb, name] = request.url.split("/");
  if (verb === "add") { counts[name] = (counts[name] ?? 0) + 1; carts.set(name, Date.now() + 1000); }
  answer.end(JSON.stringify(counts) + "\\n");
}).listen(${servicePort}, "127.0.0.1");
`;

/** A busy host may take its time. */
const answers = `for _ in $(seq 600); do (: </dev/tcp/127.0.0.1/${servicePort}) 2>/dev/null && break; sleep 0.1; done; (: </dev/tcp/127.0.0.1/${servicePort})`;

export const startService: readonly Call[] = [
  bash(`mkdir -p ${folder}`),
  write(`${folder}/server.js`, program),
  bash(`${background(`node ${folder}/server.js`)} ${answers}`),
];

export const request = (index: number): Call => bash(`curl -s localhost:${servicePort}/add/n${index % 5}`);

/** What it holds, for the end of a task. */
export const serviceState = `curl -s localhost:${servicePort}/`;
