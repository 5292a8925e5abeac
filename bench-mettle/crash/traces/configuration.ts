// Settings of the machine, outside of the workspace.
import { act, expects, listens, look, type Trace, until, write } from "./trace.ts";

const shell = { family: "configuration", kind: "shell" } as const;

const reloading = `import http.server, signal
setting = {}
def load(*_):
    global setting
    setting = dict(line.strip().split("=") for line in open("/etc/agentd.conf") if "=" in line)
load(); signal.signal(signal.SIGHUP, load)
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(" ".join(k + "=" + setting[k] for k in sorted(setting)).encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", 8151), H).serve_forever()
`;

export const configuration: readonly Trace[] = [
  {
    id: "config-reload",
    ...shell,
    follows: "Terminal-Bench: change a running service's setting without restarting it",
    files: { "agentd.py": reloading },
    turns: [
      look("What does it read?", "grep -n etc agentd.py"),
      act("The setting.", "printf 'workers=2\\nlog=debug\\n' > /etc/agentd.conf"),
      act("Start it.", `python3 agentd.py >/dev/null 2>&1 </dev/null & echo $! > /run/agentd.pid; ${listens(8151)}`),
      act("More workers.", "sed -i s/workers=2/workers=8/ /etc/agentd.conf"),
      act(
        "It must see that.",
        `kill -HUP $(cat /run/agentd.pid); ${until("curl -s localhost:8151 | grep -q workers=8")}`,
      ),
      act(
        "A setting for the next start only.",
        "echo colour=red >> /etc/agentd.conf; curl -s localhost:8151 > now.txt; cat now.txt",
      ),
    ],
    verify: [
      expects("cat now.txt", "log=debug workers=8", "what it said"),
      expects("xargs < /etc/agentd.conf", "workers=8 log=debug colour=red", "the file"),
      expects("curl -s localhost:8151", "log=debug workers=8", "the service"),
    ].join("\n"),
  },
  {
    id: "config-users-and-modes",
    ...shell,
    follows: "Terminal-Bench: set up users, groups and permissions of a shared folder",
    files: {},
    turns: [
      look("Who is there?", "tail -n 2 /etc/passwd"),
      act("The group.", "groupadd -g 7001 crew"),
      act("A user of it.", "useradd -u 7002 -g crew -M -s /bin/sh mira"),
      act("The folder.", "install -d -m 2770 -g crew /srv/crew"),
      act(
        "A file of hers.",
        "setpriv --reuid=7002 --regid=7001 --clear-groups sh -c 'umask 007; echo hers > /srv/crew/note'",
      ),
      look("How does it look?", "ls -la /srv/crew"),
    ],
    verify: [
      expects("stat -c '%a %G' /srv/crew", "2770 crew", "the folder"),
      expects("stat -c '%a %U %G' /srv/crew/note", "660 mira crew", "the file"),
    ].join("\n"),
  },
  {
    id: "config-hosts-and-name",
    ...shell,
    files: {
      "who.py": "import socket\nprint(open('/etc/hostname').read().strip(), socket.gethostbyname('db.internal'))\n",
    },
    turns: [
      look("What is it called?", "cat /etc/hostname /etc/hosts"),
      act("Its name.", "echo build-7 > /etc/hostname"),
      act("The database.", "echo 127.0.0.9 db.internal >> /etc/hosts"),
      act("Locale for all.", "mkdir -p /etc/profile.d && echo 'export REGION=north' > /etc/profile.d/region.sh"),
      act("What is seen?", "{ python3 who.py; bash -lc 'echo $REGION'; } > seen.txt; cat seen.txt"),
    ],
    verify: expects("xargs < seen.txt", "build-7 127.0.0.9 north", "what was seen"),
  },
  {
    id: "config-init-script",
    ...shell,
    files: {},
    turns: [
      act(
        "The daemon.",
        write(
          "beat.sh",
          "#!/bin/bash\nbeats=0\ntrap 'beats=$((beats + 1))' USR1\ntrap 'echo $beats > /var/tmp/beats.part; mv /var/tmp/beats.part /var/tmp/beats; exit 0' TERM\nwhile :; do sleep 0.02; done\n",
        ),
      ),
      act("Where daemons live.", "install -m 755 beat.sh /usr/local/sbin/beatd && mkdir -p /etc/init.d"),
      act(
        "Its script.",
        write(
          "beat.init",
          "#!/bin/sh\ncase $1 in\nstart) /usr/local/sbin/beatd >/dev/null 2>&1 </dev/null & echo $! > /run/beatd.pid;;\nbeat) kill -USR1 $(cat /run/beatd.pid);;\nstop) kill -TERM $(cat /run/beatd.pid);;\nesac\n",
        ),
        "install -m 755 beat.init /etc/init.d/beat",
      ),
      act("Start.", "/etc/init.d/beat start; sleep 0.3"),
      act("Two beats.", "/etc/init.d/beat beat; sleep 0.2; /etc/init.d/beat beat; sleep 0.2"),
      act(
        "Stop.",
        `/etc/init.d/beat stop; ${until("[ -f /var/tmp/beats ]")}; cp /var/tmp/beats beats.txt; cat beats.txt`,
      ),
    ],
    verify: expects("cat beats.txt", "2", "the beats"),
  },
];
