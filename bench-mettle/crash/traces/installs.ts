// Packages that are made here and installed, outside of the workspace as well.
import { act, background, expects, listens, look, type Trace, write } from "./trace.ts";

const shell = { family: "installs", kind: "shell" } as const;

const control = (name: string, version: string): string =>
  `Package: ${name}\nVersion: ${version}\nArchitecture: all\nMaintainer: agent <agent@localhost>\nDescription: made by a trace\n`;

export const installs: readonly Trace[] = [
  {
    id: "install-deb",
    ...shell,
    follows: "Terminal-Bench: build a Debian package and install it",
    files: { "hello.sh": "#!/bin/sh\necho hello from a package\n" },
    turns: [
      look("What is there?", "ls; dpkg --print-architecture"),
      act("The tree.", "mkdir -p pkg/DEBIAN pkg/usr/bin && install -m 755 hello.sh pkg/usr/bin/hello-agent"),
      act("What it is.", write("pkg/DEBIAN/control", control("hello-agent", "1.0"))),
      act("Make it.", "dpkg-deb --root-owner-group -b pkg hello-agent.deb"),
      act("Install it.", "dpkg --force-unsafe-io -i hello-agent.deb"),
      look("Is it there?", "dpkg -s hello-agent | head -n 3; hello-agent"),
    ],
    verify: [
      expects("hello-agent", "hello from a package", "the program"),
      expects("dpkg-query -W hello-agent | cut -f 2", "1.0", "the package"),
    ].join("\n"),
  },
  {
    id: "install-deb-upgrade",
    ...shell,
    files: { "control.in": control("tick-agent", "VERSION") },
    prepare:
      "for v in 1 2; do mkdir -p p$v/DEBIAN p$v/etc p$v/usr/bin; sed s/VERSION/$v/ control.in > p$v/DEBIAN/control; echo v=$v > p$v/etc/tick.conf; echo /etc/tick.conf > p$v/DEBIAN/conffiles; printf '#!/bin/sh\\n. /etc/tick.conf; echo '$v' $v\\n' > p$v/usr/bin/tick-agent; chmod 755 p$v/usr/bin/tick-agent; dpkg-deb --root-owner-group -b p$v tick_$v.deb; rm -r p$v; done",
    turns: [
      look("Which are there?", "ls *.deb"),
      act("The first.", "dpkg --force-unsafe-io -i tick_1.deb && tick-agent > first.txt"),
      act("Its setting is ours.", "echo v=mine > /etc/tick.conf"),
      act("The second, and our setting stays.", "dpkg --force-unsafe-io --force-confold -i tick_2.deb"),
      act("What does it say?", "tick-agent > said.txt; cat said.txt"),
    ],
    verify: [
      expects("cat first.txt", "1 1", "what the first said"),
      expects("cat said.txt", "2 mine", "what it said"),
      expects("cat /etc/tick.conf", "v=mine", "the setting"),
      expects("dpkg-query -W tick-agent | cut -f 2", "2", "the version"),
    ].join("\n"),
  },
  {
    id: "install-npm-local",
    ...shell,
    files: {
      "left/package.json": `{ "name": "left-agent", "version": "1.2.3", "main": "index.js", "bin": { "left-agent": "cli.js" } }\n`,
      "left/index.js": "module.exports = (text, width) => text.padStart(width, '.');\n",
      "left/cli.js": "#!/usr/bin/env node\nconsole.log(require('./index.js')(process.argv[2], 6));\n",
      "app/package.json": `{ "name": "app", "version": "1.0.0", "private": true }\n`,
    },
    turns: [
      act("Pack it.", "cd left && npm pack --silent && mv left-agent-1.2.3.tgz /opt/ && cd .."),
      act(
        "Install it into the app.",
        "cd app && npm install --offline --no-audit --no-fund --silent /opt/left-agent-1.2.3.tgz",
      ),
      look("What is there?", "npm ls --depth 0"),
      act("Use it.", write("app/use.js", "console.log(require('left-agent')('ab', 5));\n")),
      act("Run it where we are.", "node use.js > used.txt; cat used.txt"),
    ],
    verify: [
      expects("cat app/used.txt", "...ab", "what it said"),
      expects("cd app && node_modules/.bin/left-agent x", ".....x", "its command"),
      `[ -f /opt/left-agent-1.2.3.tgz ] || { echo "no archive"; exit 1; }`,
    ].join("\n"),
  },
  {
    id: "install-python-path",
    ...shell,
    files: {
      "src/shapes.py": "def area(w, h):\n    return w * h\n",
      "serve.py":
        "import http.server, shapes, urllib.parse\nn = 0\nclass H(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n        global n\n        n += 1\n        w, h = self.path[1:].split('x')\n        self.send_response(200); self.end_headers(); self.wfile.write(b'%d of %d' % (shapes.area(int(w), int(h)), n))\n    def log_message(self, *_): pass\nhttp.server.HTTPServer(('127.0.0.1', 8121), H).serve_forever()\n",
    },
    turns: [
      look("How is Python searched?", "python3 -c 'import sys; print(sys.path)'"),
      act("Where all programs find it.", "mkdir -p /opt/shapes && cp src/shapes.py /opt/shapes/ && rm -r src"),
      act(
        "Python is told.",
        "echo /opt/shapes > $(python3 -c 'import site; print(site.getsitepackages()[0])')/shapes.pth",
      ),
      act("The service that needs it.", `${background("python3 serve.py")} ${listens(8121)}`),
      act("A request.", "curl -s localhost:8121/3x4 > first.txt"),
      act("Another.", "curl -s localhost:8121/5x6 > second.txt; cat first.txt second.txt"),
    ],
    verify: [
      expects("cat first.txt second.txt", "12 of 130 of 2", "the answers"),
      expects("python3 -c 'import shapes; print(shapes.area(2, 2))'", "4", "the module"),
      `[ ! -e src ] || { echo "src is still there"; exit 1; }`,
    ].join("\n"),
  },
];
