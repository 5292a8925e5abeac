// What a checkpoint and the rewind to it cost together for services as agents start them, beside nothing else: the question is whether they stay below a second. Writes services.md.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openRewind } from "agentrewind";
import { quantile } from "../figures.ts";
import { describeMachine } from "../machine.ts";

const usage = `npm run bench:services -- [--rounds 20] [--out FOLDER]

Needs root, and CRIU as \`node scripts/sandbox-tools.mjs\` finds or places it. Redis is installed inside of the sandbox, where the archive can be reached; PostgreSQL is taken where the machine has it.
`;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    out: { type: "string", default: fileURLToPath(new URL("../../results", import.meta.url)) },
    help: { type: "boolean", default: false },
  },
});

interface Service {
  readonly name: string;
  /** A line that starts it, and fails where this machine has none. */
  readonly start: string;
  /** A line that counts one further in the service's memory, and says where it is. */
  readonly count: string;
}

const python = `import http.server
n = 0
class Counter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global n
        n += 1
        self.send_response(200); self.end_headers(); self.wfile.write(b"%d" % n)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8001), Counter).serve_forever()`;

const node = `let n = 0; require("http").createServer((_, answer) => answer.end(String(++n))).listen(8002, "127.0.0.1")`;

const until = (port: number): string => `until (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.05; done`;
const background = ">/dev/null 2>&1 </dev/null &";
const as = "setpriv --reuid=65534 --regid=65534 --clear-groups";

const services: readonly Service[] = [
  {
    name: "Python, HTTP",
    start: `python3 -c '${python}' ${background} ${until(8001)}`,
    count: "curl -s 127.0.0.1:8001",
  },
  { name: "Node, HTTP", start: `node -e '${node}' ${background} ${until(8002)}`, count: "curl -s 127.0.0.1:8002" },
  {
    name: "bash, a job that counts",
    start: `mkfifo ask told; bash -c 'exec 3<>ask; while read -r -u 3 _; do echo $((++n)) >told; done' ${background} true`,
    count: "echo >ask; cat told",
  },
  {
    name: "Redis",
    start: `{ command -v redis-server || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server; }; } >/dev/null 2>&1
      redis-server --port 8003 --save '' --daemonize yes >/dev/null && ${until(8003)}`,
    count: "redis-cli -p 8003 incr n",
  },
  {
    name: "PostgreSQL",
    start: `PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH; mkdir -p /var/lib/bench && chown 65534 /var/lib/bench && cd /var/lib/bench &&
      ${as} initdb -A trust -N -U bench -D data >/dev/null && ${as} pg_ctl -D data -o '-p 8004 -k /var/lib/bench' -l log -w start >/dev/null && psql -h /var/lib/bench -p 8004 -U bench -qd postgres -c 'create sequence n'`,
    count: `psql -h /var/lib/bench -p 8004 -U bench -Atqd postgres -c "select nextval('n')"`,
  },
];

interface Measured {
  readonly service: string;
  readonly processes: number;
  readonly checkpoint: readonly number[];
  readonly rewind: readonly number[];
}

/** null where the machine has no such service. */
async function measure({ name, start, count }: Service, rounds: number): Promise<Measured | null> {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-bench-"));
  const workspace = join(base, "workspace");
  mkdirSync(workspace);
  const rewind = await openRewind({ workspace, store: join(base, "store"), environment: "sandbox" });
  try {
    const thread = rewind.thread("bench");
    const sh = (line: string) => rewind.environment.exec(line, { timeoutMs: 300_000 });
    const started = await sh(start);
    if (started.exitCode !== 0) return null;
    const processes = Number((await sh("ls -d /proc/[0-9]* | wc -l")).stdout);
    const found = { checkpoint: [] as number[], rewind: [] as number[] };
    const timed = async <T>(list: number[], work: () => Promise<T>): Promise<T> => {
      const begun = performance.now();
      const result = await work();
      list.push(performance.now() - begun);
      return result;
    };
    for (let round = 0; round < rounds; round++) {
      const before = Number((await sh(count)).stdout);
      const { id, problems } = await timed(found.checkpoint, () =>
        thread.checkpoint({ context: { messages: [`${round}`] } }),
      );
      await sh(count);
      const { notRestored } = await timed(found.rewind, () => thread.rewind({ to: id }));
      const after = Number((await sh(count)).stdout);
      if (problems.length + notRestored.length > 0 || after !== before + 1)
        throw new Error(`${name}: ${before}, then ${after}: ${JSON.stringify([problems, notRestored])}`);
    }
    return { service: name, processes, ...found };
  } finally {
    await rewind.close();
    rmSync(base, { recursive: true, force: true });
  }
}

function markdown(all: readonly (Measured | string)[], rounds: number): string {
  const { cores, processor, kernel, node } = describeMachine(tmpdir());
  const cells = (list: readonly number[]): string =>
    `${quantile(list, 0.5).toFixed(0)} | ${quantile(list, 0.95).toFixed(0)}`;
  const row = (one: Measured | string): string => {
    if (typeof one === "string") return `| ${one} | not on this machine | | | | | | |`;
    const { service, processes, checkpoint, rewind } = one;
    const both = checkpoint.map((time, index) => time + (rewind[index] as number));
    return `| ${service} | ${processes} | ${cells(checkpoint)} | ${cells(rewind)} | ${cells(both)} |`;
  };
  return [
    "# Services: a checkpoint and the rewind to it",
    "",
    `\`npm run bench:services -- --rounds ${rounds}\` on ${cores} cores (${processor}), Linux ${kernel}, Node ${node}. Milliseconds from call to ready. A round: a request, a checkpoint, a request, a rewind (which captures what it leaves first), a request, whose answer must go on from the checkpoint.`,
    "",
    "| service | processes in the sandbox | checkpoint p50 | p95 | rewind p50 | p95 | both p50 | p95 |",
    "|---|---|---|---|---|---|---|---|",
    ...all.map(row),
    "",
  ].join("\n");
}

if (values.help) process.stdout.write(usage);
else {
  const all: (Measured | string)[] = [];
  for (const service of services) {
    all.push((await measure(service, Number(values.rounds))) ?? service.name);
    writeFileSync(join(values.out, "services.md"), markdown(all, Number(values.rounds)));
    process.stderr.write(`${markdown(all, Number(values.rounds)).trim().split("\n").at(-1)}\n`);
  }
}
