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

export const services: readonly Trace[] = [
  {
    id: "service-counter",
    family: "services",
    kind: "shell",
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
      expects("cat report.json", '{"/": 2, "/about": 1, "/report": 1}'.replaceAll('"', '\\"'), "the report"),
      expects("curl -s localhost:8101/report", '{"/": 2, "/about": 1, "/report": 2}'.replaceAll('"', '\\"'), "the service"),
    ].join("\n"),
  },
];
