// Services of an agent come back to where they were, as a client outside sees them: servers, shells, interpreters, terminals.
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { createServer } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { freePort } from "../helpers/free-port.ts";
import { Held, needed, talk, until } from "./held.ts";

const servers = {
  "server.py": `
import http.server, sys
n = 0
class Counter(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        global n
        n += 1
        body = str(n).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Counter).serve_forever()
`,
  "server.mjs": `
import { createServer } from "node:http";
let n = 0;
createServer((_, answer) => answer.end(String(++n))).listen(Number(process.argv[2]), "127.0.0.1");
`,
  "server.sh": `
n=0
while read -r line <ask; do n=$((n + 1)); echo $n >answer; done
`,
};

/** The answer to a GET; "" where nobody listens. */
const ask = (port: number, agent?: Agent): Promise<string> =>
  new Promise((done) => {
    const request = get({ port, host: "127.0.0.1", agent: agent ?? false, timeout: 10_000 }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (data) => {
        text += data;
      });
      answer.on("end", () => done(text));
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => done(""));
  });

describe.skipIf(lacking(...needed))("services", () => {
  let held: Held;
  let python: number;
  let node: number;
  beforeAll(async () => {
    held = await Held.open({ network: "host" }, ["counter.py"]);
    for (const [name, text] of Object.entries(servers)) writeFileSync(held.path(name), text);
    [python, node] = [await freePort(), await freePort()];
    await held.sh(`mkfifo ask answer; python3 server.py ${python} & node server.mjs ${node} & bash server.sh &`);
    for (const port of [python, node]) await until(async () => (await ask(port)) === "1");
  });
  beforeEach(() => held.sh(`cd ${held.workspace}`));
  afterAll(() => held.end());

  const askBash = async (): Promise<string> => held.sh("echo >ask; cat answer");

  test("servers of Python, Node and bash count on from the checkpoint, and again", async () => {
    expect(await askBash()).toBe("1");
    const checkpoint = await held.checkpoint();
    for (let round = 0; round < 2; round++) {
      for (const port of [python, node]) expect([await ask(port), await ask(port)]).toEqual(["2", "3"]);
      expect([await askBash(), await askBash()]).toEqual(["2", "3"]);
      if (round === 0) await held.sh("kill %1 %2 %3; wait");
      expect((await held.back(checkpoint)).notRestored).toEqual([]);
    }
    expect([await ask(python), await ask(node), await askBash()]).toEqual(["2", "2", "2"]);
  });

  test("a server that is asked all the time answers behind a rewind; clients outside are named", async () => {
    const before = Number(await ask(node));
    const agent = new Agent({ keepAlive: true });
    let over = false;
    const clients = [1, 2, 3].map(async () => {
      while (!over) await ask(node, agent);
    });
    await until(async () => Number(await ask(node, agent)) > before + 100);
    const checkpoint = await held.checkpoint();
    expect(checkpoint.problems).toContainEqual({
      path: expect.stringMatching(/^process \d+ \(node\)$/),
      reason: expect.stringMatching(/^its TCP connection to 127.0.0.1:\d+ leaves the sandbox/),
    });
    await held.back(checkpoint);
    const back = Number(await ask(node));
    await until(async () => Number(await ask(node)) > back + 100);
    over = true;
    await Promise.all(clients);
    agent.destroy();
  });

  test("a rewind is refused before anything is touched where another process has the port", async () => {
    const checkpoint = await held.checkpoint();
    await held.sh("kill %2; wait %2 || true; echo mine >written");
    const other = createServer((socket) => socket.end("other")).listen(node, "127.0.0.1");
    await until(() => other.listening);
    const before = await ask(python);
    await expect(held.back(checkpoint)).rejects.toMatchObject({
      code: "PROCESSES_NOT_RESTORED",
      details: { ports: [node] },
    });
    expect(await talk(node, "")).toBe("other");
    expect(Number(await ask(python))).toBe(Number(before) + 1);
    expect(await held.sh("cat written")).toBe("mine");
    await new Promise((done) => other.close(done));
    await held.back(checkpoint);
    expect(Number(await ask(node))).toBeGreaterThan(1);
    expect(await held.sh("ls written || true")).toBe("");
  });

  test("a shell has its variables, functions, aliases, options, folder, umask, traps and jobs again", async () => {
    await held.sh(
      "mkdir -p deep/er; cd deep/er; a=1; export b=two; l=(x 'y z'); f() { echo f-$a; }; alias g='echo alias'",
    );
    await held.sh("umask 027; set -o noclobber; trap 'echo bye' USR1; sleep 100000 & sleep 100001 &");
    const tell =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's
      'echo $a $b ${l[1]} $(f); g; set -o | grep noclobber; pwd; umask; trap; jobs -r; echo $$ $!; env | sort | grep "^b=" || true';
    const before = await held.sh(tell);
    const checkpoint = await held.checkpoint();
    await held.sh(
      "a=2; unset b f l; unalias g; cd /; umask 0; set +o noclobber; trap - USR1; kill %4 %5; wait %4 %5 || true",
    );
    await held.sh("f() { echo other; }; alias g=true");
    expect(await held.sh(tell)).not.toBe(before);
    await held.back(checkpoint);
    expect(await held.sh(tell)).toBe(before);
    await held.sh("kill %4; wait %4 || true");
    expect(await held.sh("jobs -r")).not.toContain("100000");
  });

  test("an interpreter has its names, imports and open files again", async () => {
    await held.sh("mkfifo repl; sleep 100000 >repl & python3 -iqu <repl >>repl.out 2>/dev/null &");
    const type = async (line: string): Promise<string> => {
      await held.sh(
        `: >|repl.out; cat >repl <<'END'\n${line}\nprint("done")\nEND\nuntil grep -q done repl.out; do sleep 0.01; done`,
      );
      return held.sh("head -1 repl.out");
    };
    await type("import math, random; random.seed(7); x = 1; f = open('server.py'); s = f.readline() + f.readline()");
    const checkpoint = await held.checkpoint();
    const tell = "print(x, 'math' in globals(), f.closed or f.readline(), random.random())";
    const first = await type(tell);
    await type("x = 2; f.close(); del math");
    await held.back(checkpoint);
    expect(await type(tell)).toBe(first);
    expect(first).toMatch(/^1 True n = 0/);
  });

  test.each([[""], ["tcp"], ["terminal"]])(
    "what writes a log all the time leaves no number out and none twice (%s)",
    async (how) => {
      await held.sh(`rm -f log; python3 counter.py log ${how} & until [ -s log ]; do sleep 0.01; done`);
      const numbers = (): number[] => readFileSync(held.path("log"), "utf8").trim().split("\n").map(Number);
      const checkpoint = await held.checkpoint();
      const grown = async (): Promise<void> => {
        const { length } = numbers();
        await until(() => numbers().length > length + 20);
      };
      await grown();
      await held.back(checkpoint);
      await grown();
      const all = numbers();
      expect(all).toEqual(all.map((_, index) => 1_000_001 + index));
      await held.sh("kill %+; wait %+ || true");
    },
  );

  test("a terminal multiplexer has its session again", async () => {
    if ((await held.sh("command -v tmux || true")) === "") return;
    await held.sh("tmux new-session -d -s work 'bash --norc'; tmux send-keys -t work 'n=0; echo $n >|n' Enter");
    const next = async (): Promise<string> => {
      await held.sh(
        "rm -f n; tmux send-keys -t work 'n=$((n+1)); echo $n >n' Enter; until [ -s n ]; do sleep 0.01; done",
      );
      return held.sh("cat n");
    };
    await held.sh("until [ -s n ]; do sleep 0.01; done");
    expect(await next()).toBe("1");
    const checkpoint = await held.checkpoint();
    expect([await next(), await next()]).toEqual(["2", "3"]);
    await held.sh("tmux kill-server");
    await held.back(checkpoint);
    expect([await next(), await next()]).toEqual(["2", "3"]);
    await held.sh("tmux kill-server");
  });

  test("what a command of its own left running comes back, while another command runs", async () => {
    const port = await freePort();
    await held.rewind.environment.exec(["sh", "-c", `python3 server.py ${port} >/dev/null 2>&1 &`]);
    await until(async () => (await ask(port)) === "1");
    const runs = held.rewind.environment.exec("sleep 100000", { cwd: "." });
    const checkpoint = await held.checkpoint();
    expect(await ask(port)).toBe("2");
    await held.back(checkpoint);
    await runs;
    expect(await ask(port)).toBe("2");
  });

  test("closed and opened again, twice, it goes on with files and processes, and is the same sandbox", async () => {
    const tell = "hostname; echo $$; jobs -r | wc -l";
    const before = await held.sh(tell);
    for (const round of [1, 2]) {
      const count = Number(await ask(python));
      writeFileSync(held.path(`round-${round}`), "written");
      await held.rewind.close();
      expect(await ask(python)).toBe("");
      held = await held.again({ network: "host" });
      expect(await held.sh("ls round-*")).toBe(["round-1", "round-2"].slice(0, round).join("\n"));
      expect(Number(await ask(python))).toBe(count + 1);
      expect(await held.sh(tell)).toBe(before);
    }
  });
});
