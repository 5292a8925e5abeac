// Services whose state lives in their memory.
import { act, background, expects, listens, look, type Trace, write } from "./trace.ts";

const counter = `import http.server, json
hits = {}
class Counter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        hits[self.path] = hits.get(self.path, 0) + 1
        body = json.dumps(hits, sort_keys=True).encode()
        self.send_response(200); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8101), Counter).serve_forever()
`;

const basket = `const items = new Map();
require("node:http").createServer((request, answer) => {
  const [, verb, name, count] = request.url.split("/");
  if (verb === "add") items.set(name, (items.get(name) ?? 0) + Number(count));
  if (verb === "drop") items.delete(name);
  answer.end([...items].sort().map(([name, count]) => name + "=" + count).join(" ") + "\\n");
}).listen(8102, "127.0.0.1");
`;

const sessions = `import socketserver
tokens = {}
class Session(socketserver.StreamRequestHandler):
    def handle(self):
        verb, _, rest = self.rfile.readline().decode().strip().partition(" ")
        if verb == "login":
            tokens[rest] = "t%03d" % (len(tokens) + 1)
            answer = tokens[rest]
        elif verb == "who":
            answer = next((name for name, token in tokens.items() if token == rest), "nobody")
        else:
            answer = str(len(tokens))
        self.wfile.write((answer + "\\n").encode())
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", 8103), Session).serve_forever()
`;

const upstream = `import http.server, sys
name = sys.argv[2]
class Upstream(http.server.BaseHTTPRequestHandler):
    served = 0
    def do_GET(self):
        Upstream.served += 1
        self.send_response(200); self.end_headers(); self.wfile.write(("%s%d" % (name, Upstream.served)).encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Upstream).serve_forever()
`;

const balancer = `const http = require("node:http");
const ports = [8105, 8106];
let next = 0;
http.createServer((request, answer) => {
  http.get({ port: ports[next++ % ports.length], host: "127.0.0.1" }, (upstream) => upstream.pipe(answer));
}).listen(8104, "127.0.0.1");
`;

const limiter = `import http.server
used = {}
class Limiter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        who = self.headers.get("x-key", "-")
        used[who] = used.get(who, 0) + 1
        self.send_response(200 if used[who] <= 3 else 429); self.end_headers()
        self.wfile.write(b"%d" % used[who])
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8107), Limiter).serve_forever()
`;

const tcp = (port: number, line: string): string =>
  `{ exec 3<>/dev/tcp/127.0.0.1/${port}; echo ${line} >&3; head -n 1 <&3; exec 3>&-; }`;

const shell = { family: "services", kind: "shell" } as const;

export const services: readonly Trace[] = [
  {
    id: "service-counter",
    ...shell,
    follows: "Terminal-Bench: write and start a small HTTP server, then prove that it answers",
    files: {},
    turns: [
      look("What is there?", "ls -la; python3 --version"),
      act("A server that counts its visitors.", write("counter.py", counter)),
      act("It must run.", `${background("python3 counter.py")} ${listens(8101)}`),
      act("Two visits of the front page.", "curl -s localhost:8101/; curl -s localhost:8101/"),
      look("Who listens?", "ps -ef | grep -c '[c]ounter.py'"),
      act("One of another page.", "curl -s localhost:8101/about"),
      act("The report.", "curl -s localhost:8101/report > report.json; cat report.json"),
    ],
    verify: [
      `grep -qx '{"/": 2, "/about": 1, "/report": 1}' report.json || { echo "the report: $(cat report.json)"; exit 1; }`,
      `curl -s localhost:8101/report | grep -qx '{"/": 2, "/about": 1, "/report": 2}' || { echo "the service is not the one that reported"; exit 1; }`,
    ].join("\n"),
  },
  {
    id: "service-basket",
    ...shell,
    files: { "basket.js": basket },
    turns: [
      look("How does it work?", "cat basket.js; node --version"),
      act("Start it.", `${background("node basket.js")} ${listens(8102)}`),
      act("Apples.", "curl -s localhost:8102/add/apple/3"),
      act("Pears, and more apples.", "curl -s localhost:8102/add/pear/2; curl -s localhost:8102/add/apple/2"),
      act("Plums by mistake.", "curl -s localhost:8102/add/plum/9; curl -s localhost:8102/add/cherry/4"),
      act("No plums.", "curl -s localhost:8102/drop/plum"),
      look("What is in it?", "curl -s localhost:8102/"),
    ],
    verify: expects("curl -s localhost:8102/", "apple=5 cherry=4 pear=2", "the basket"),
  },
  {
    id: "service-sessions",
    ...shell,
    files: { "sessions.py": sessions },
    turns: [
      look("The protocol?", "sed -n 1,15p sessions.py"),
      act("Start it.", `${background("python3 sessions.py")} ${listens(8103)}`),
      act("The first to log in.", `${tcp(8103, "login ada")} > ada.token`),
      act("The second.", `${tcp(8103, "login bob")} > bob.token`),
      look("Two?", tcp(8103, "count")),
      act("Who is who?", `for n in ada bob; do ${tcp(8103, "who $(cat $n.token)")}; done > who.txt`),
    ],
    verify: [
      expects("cat ada.token bob.token | xargs", "t001 t002", "the tokens"),
      expects("xargs < who.txt", "ada bob", "who they are"),
      expects(tcp(8103, "who t002"), "bob", "the service"),
    ].join("\n"),
  },
  {
    id: "service-balancer",
    ...shell,
    follows: "Terminal-Bench: put a reverse proxy in front of two back ends",
    files: { "upstream.py": upstream },
    turns: [
      look("What is there?", "ls; cat upstream.py"),
      act(
        "The back ends.",
        `${background("python3 upstream.py 8105 a")} ${background("python3 upstream.py 8106 b")} ${listens(8105)}; ${listens(8106)}`,
      ),
      act("One of them is warmed up.", "curl -s localhost:8105/; curl -s localhost:8105/"),
      act("The balancer.", write("balancer.js", balancer)),
      act("Start it.", `${background("node balancer.js")} ${listens(8104)}`),
      act("Requests through it.", "for i in 1 2 3; do curl -s localhost:8104/; echo; done > seen.txt; cat seen.txt"),
    ],
    verify: [
      expects("xargs < seen.txt", "a3 b1 a4", "what was seen"),
      expects("curl -s localhost:8104/", "b2", "the next answer"),
    ].join("\n"),
  },
  {
    id: "service-limiter",
    ...shell,
    files: { "limiter.py": limiter },
    turns: [
      look("The rule?", "cat limiter.py"),
      act("Start it.", `${background("python3 limiter.py")} ${listens(8107)}`),
      act("A key is used up.", "for i in 1 2 3; do curl -s -H 'x-key: k1' localhost:8107/; done"),
      act("Another one is not.", "curl -s -H 'x-key: k2' localhost:8107/"),
      act(
        "The answers to the next request of each.",
        `for k in k1 k2; do curl -s -o /dev/null -w '%{http_code}\\n' -H "x-key: $k" localhost:8107/; done > codes.txt; cat codes.txt`,
      ),
    ],
    verify: [
      expects("xargs < codes.txt", "429 200", "the codes"),
      expects("curl -s -H 'x-key: k2' localhost:8107/", "3", "the second key's count"),
    ].join("\n"),
  },
  {
    id: "service-rotate-port",
    ...shell,
    files: { "upstream.py": upstream },
    turns: [
      act("The old one.", `python3 upstream.py 8108 old >/dev/null 2>&1 </dev/null & old=$!; ${listens(8108)}`),
      act("It serves.", "curl -s localhost:8108/ > first.txt; cat first.txt"),
      act(
        "The new one beside it.",
        `python3 upstream.py 8109 new >/dev/null 2>&1 </dev/null & new=$!; ${listens(8109)}`,
      ),
      act("It is tried.", "curl -s localhost:8109/ > second.txt"),
      act("The old one ends.", "kill $old && wait $old; echo $old $new > pids.txt"),
      look("What runs?", "jobs -l"),
    ],
    verify: [
      expects("cat first.txt second.txt", "old1new1", "the answers"),
      `(: </dev/tcp/127.0.0.1/8108) 2>/dev/null && { echo "the old one still listens"; exit 1; }`,
      `[ -n "$(cut -d ' ' -f 1 pids.txt)" ] || { echo "no number of the old one"; exit 1; }`,
      expects("curl -s localhost:8109/", "new2", "the new one"),
    ].join("\n"),
  },
];
