// Logs: read, followed, summed up, rotated.
import { act, expects, look, type Trace, until, write } from "./trace.ts";

const shell = { family: "logs", kind: "shell" } as const;

const access = [
  "10.0.0.1 GET /a 200 12",
  "10.0.0.2 GET /b 500 7",
  "10.0.0.1 GET /b 200 9",
  "10.0.0.3 POST /a 404 3",
  "10.0.0.2 GET /a 500 30",
  "10.0.0.1 GET /c 200 4",
].join("\n");

export const logs: readonly Trace[] = [
  {
    id: "log-summary",
    ...shell,
    follows: "Terminal-Bench: sum up a server's access log by status and by client",
    files: { "access.log": `${access}\n` },
    turns: [
      look("How does it look?", "head -n 3 access.log; wc -l access.log"),
      act("By status.", "awk '{ n[$4]++ } END { for (s in n) print s, n[s] }' access.log | sort > status.txt"),
      act(
        "By client.",
        "awk '{ n[$1] += $5 } END { for (s in n) print s, n[s] }' access.log | sort -k2,2nr > clients.txt",
      ),
      act("The failing ones.", "awk '$4 >= 500 { print $1 }' access.log | sort -u > failing.txt"),
      act(
        "One report.",
        "jq -Rn '[inputs]' < status.txt > s.json; jq -n --slurpfile s s.json --rawfile c clients.txt --rawfile f failing.txt '{status: $s[0], top: ($c | split(\"\\n\")[0]), failing: ($f | rtrimstr(\"\\n\"))}' > report.json; rm s.json",
      ),
    ],
    verify: [
      expects("jq -r '.status[]' report.json | paste -sd ,", "200 3,404 1,500 2", "the statuses"),
      expects("jq -r .top report.json", "10.0.0.2 37", "the client"),
      expects("jq -r .failing report.json", "10.0.0.2", "the failing one"),
    ].join("\n"),
  },
  {
    id: "log-follow",
    ...shell,
    files: { "app.log": "start\n" },
    turns: [
      act("Follow it.", "tail -n 0 -f app.log 2>/dev/null | grep --line-buffered ERROR > errors & sleep 0.3"),
      act("The program writes.", `echo 'INFO a' >> app.log; echo 'ERROR b' >> app.log; ${until("grep -q b errors")}`),
      look("Is it seen?", "cat errors; jobs"),
      act("And once more.", `echo 'ERROR c' >> app.log; ${until("grep -q c errors")}`),
      act("Enough.", "kill %1; wait; wc -l < errors > count; echo 'ERROR d' >> app.log"),
    ],
    verify: [
      expects("cat count", "2", "the count"),
      expects("xargs < errors", "ERROR b ERROR c", "the errors"),
      expects("tail -n 1 app.log", "ERROR d", "the log"),
    ].join("\n"),
  },
  {
    id: "log-rotate",
    ...shell,
    follows: "Terminal-Bench: rotate logs of a program that keeps its file open",
    files: {
      "writer.sh":
        "exec 4>>/var/log/agentw.log\ntrap 'exec 4>>/var/log/agentw.log' HUP\ntrap 'echo line >&4' USR1\nwhile :; do sleep 0.02; done\n",
    },
    turns: [
      look("How does it write?", "cat writer.sh"),
      act(
        "Start it.",
        `bash writer.sh >/dev/null 2>&1 </dev/null & w=$!; ${until("[ -e /var/log/agentw.log ]")}; sleep 0.1`,
      ),
      act("Two lines.", "kill -USR1 $w; sleep 0.15; kill -USR1 $w; sleep 0.15"),
      act("Put it aside.", "mv /var/log/agentw.log /var/log/agentw.log.1"),
      act("It opens a new one.", `kill -HUP $w; ${until("[ -e /var/log/agentw.log ]")}`),
      act(
        "A line there.",
        "kill -USR1 $w; sleep 0.15; wc -l < /var/log/agentw.log > now; wc -l < /var/log/agentw.log.1 > before; cat now before",
      ),
    ],
    verify: expects("cat before now | xargs", "2 1", "the lines"),
  },
  {
    id: "log-dates",
    ...shell,
    follows: "Terminal-Bench: bring dates of several forms into one, and find the span",
    files: { "a.csv": "2024-03-01,5\n2024-03-04,9\n", "b.csv": "03/02/2024;7\n03/05/2024;1\n" },
    turns: [
      look("Two forms?", "head a.csv b.csv"),
      act("The second like the first.", "sed -E 's#([0-9]+)/([0-9]+)/([0-9]+);#\\3-\\1-\\2,#' b.csv > b2.csv"),
      act("Both in order.", "sort a.csv b2.csv > all.csv"),
      act(
        "The script for the span.",
        write(
          "span.py",
          "import datetime as d\nrows = [line.split(',')[0] for line in open('all.csv')]\nfirst, last = d.date.fromisoformat(rows[0]), d.date.fromisoformat(rows[-1])\nprint((last - first).days, sum(int(line.split(',')[1]) for line in open('all.csv')))\n",
        ),
      ),
      act("The span.", "python3 span.py > span.txt; cat span.txt"),
    ],
    verify: [expects("cat span.txt", "4 22", "the span"), expects("wc -l < all.csv", "4", "the rows")].join("\n"),
  },
];
