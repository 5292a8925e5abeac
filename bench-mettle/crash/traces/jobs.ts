// Background jobs: workers with a queue, long computations, watchers.
import { act, background, expects, look, type Trace, until, write } from "./trace.ts";

const worker = `import os, time
total = 0
os.makedirs("done", exist_ok=True)
while not os.path.exists("stop"):
    for name in sorted(os.listdir("queue")):
        if name.endswith(".part"): continue
        total += int(open("queue/" + name).read())
        os.rename("queue/" + name, "done/" + name)
        open("total.part", "w").write("%d\\n" % total); os.rename("total.part", "total")
    time.sleep(0.02)
open("last.part", "w").write("%d\\n" % total); os.rename("last.part", "last")
`;

const primes = `import signal, sys
found, n, stop = [], 2, False
def tell(*_):
    open("progress.part", "w").write("%d %d\\n" % (len(found), found[-1])); import os; os.rename("progress.part", "progress")
signal.signal(signal.SIGUSR1, tell)
goal = 300
def more(*_):
    global goal
    goal += 200
signal.signal(signal.SIGUSR2, more)
import time
while True:
    if len(found) < goal:
        if all(n % p for p in found if p * p <= n): found.append(n)
        n += 1
    else: time.sleep(0.01)
`;

const watcher = `let seen = new Set(), order = [];
const fs = require("node:fs");
setInterval(() => {
  for (const name of fs.readdirSync("inbox").sort()) {
    if (seen.has(name)) continue;
    seen.add(name); order.push(name);
    fs.writeFileSync("order.part", order.join(" ") + "\\n"); fs.renameSync("order.part", "order");
  }
}, 20);
`;

const shell = { family: "jobs", kind: "shell" } as const;

export const jobs: readonly Trace[] = [
  {
    id: "job-queue-worker",
    ...shell,
    follows: "Terminal-Bench: run a worker over a queue and report what it has processed",
    files: { "worker.py": worker, "queue/.keep.part": "" },
    turns: [
      look("How does the worker end?", "cat worker.py"),
      act("Start it.", `${background("python3 worker.py")} ${until("[ -d done ]")}`),
      act(
        "Two orders.",
        `echo 10 > q.part; mv q.part queue/1; echo 20 > q.part; mv q.part queue/2; ${until('[ -f done/2 ] && [ "$(cat total)" = 30 ]')}`,
      ),
      look("So far?", "cat total; ls done"),
      act("One more.", `echo 5 > q.part; mv q.part queue/3; ${until("[ -f done/3 ]")}`),
      act("It may end.", `touch stop; ${until("[ -f last ]")}; cat last`),
    ],
    verify: [expects("cat last", "35", "the sum"), expects("ls done | xargs", "1 2 3", "what is done")].join("\n"),
  },
  {
    id: "job-primes",
    ...shell,
    follows: "Terminal-Bench: start a long computation in the background and watch its progress by signals",
    files: {},
    turns: [
      look("How many cores?", "nproc"),
      act("The program.", write("primes.py", primes)),
      act("Start it.", `python3 primes.py >/dev/null 2>&1 </dev/null & job=$!; sleep 0.3`),
      act("How far?", `kill -USR1 $job; ${until("[ -f progress ]")}; cp progress first; cat first`),
      act("More of them.", "kill -USR2 $job; sleep 0.3"),
      act(
        "How far now?",
        `rm -f progress; kill -USR1 $job; ${until("[ -f progress ]")}; cp progress second; cat second`,
      ),
    ],
    verify: [
      expects("cat first", "300 1987", "the first"),
      expects("cat second", "500 3571", "the second"),
      `pgrep -f 'primes[.]py' >/dev/null || { echo "it does not run any more"; exit 1; }`,
    ].join("\n"),
  },
  {
    id: "job-inbox",
    ...shell,
    files: { "watch.js": watcher, "inbox/.seen": "" },
    turns: [
      act("Start the watcher.", `${background("node watch.js")} ${until("[ -f order ]")}`),
      act("A letter.", `touch inbox/zeta; ${until("grep -q zeta order")}`),
      act("Another.", `touch inbox/alpha; ${until("grep -q alpha order")}`),
      look("In which order?", "cat order"),
      act("The first is thrown away, a third comes.", `rm inbox/zeta; touch inbox/mid; ${until("grep -q mid order")}`),
      act("Keep the order.", "cp order kept; cat kept"),
    ],
    verify: expects("cat kept", ".seen zeta alpha mid", "the order"),
  },
  {
    id: "job-ticker",
    ...shell,
    files: {},
    turns: [
      act(
        "A job that counts what it is asked to.",
        `n=0; mkfifo bell; (n=0; exec 3<>bell; while read -r -u 3 by; do n=$((n + by)); echo $n > count.part; mv count.part count; done) & ${until("[ -p bell ]")}`,
      ),
      act("Ring.", `timeout 1 bash -c "echo 4 > bell"; ${until('[ "$(cat count 2>/dev/null)" = 4 ]')}`),
      look("What runs?", "jobs; cat count"),
      act("Ring again.", `timeout 1 bash -c "echo 7 > bell"; ${until('[ "$(cat count 2>/dev/null)" = 11 ]')}`),
      act("And again.", `timeout 1 bash -c "echo 20 > bell"; ${until('[ "$(cat count 2>/dev/null)" = 31 ]')}`),
      act("Write it down with the job's state.", "{ jobs | grep -c Running; cat count; } > result; cat result"),
    ],
    verify: expects("xargs < result", "1 31", "the result"),
  },
  {
    id: "job-three-stages",
    ...shell,
    files: { "words.txt": "pear\napple\nfig\napple\npear\napple\n" },
    turns: [
      act("The stages' pipes.", "mkfifo a b; sort < a > b & stage1=$!"),
      act("The second stage.", "uniq -c < b > counted & stage2=$!"),
      look("Do they wait?", "jobs"),
      act("Hold the pipe open.", "exec 7<> a; head -n 3 words.txt >&7"),
      act("The rest.", "tail -n 3 words.txt >&7"),
      act("Close it and wait for them.", "exec 7>&-; wait $stage1 $stage2; echo $? > status"),
    ],
    verify: [
      expects("awk '{print $2, $1}' counted | xargs", "apple 3 fig 1 pear 2", "the counts"),
      expects("cat status", "0", "the status"),
    ].join("\n"),
  },
  {
    id: "job-archive-nightly",
    ...shell,
    files: { "data/a.txt": "alpha\n", "data/b.txt": "beta\n" },
    turns: [
      look("What is to be archived?", "find data -type f | sort; wc -c data/*"),
      act(
        "The script.",
        write(
          "nightly.sh",
          `#!/bin/bash\nset -e\nmkdir -p archive\nn=$(ls archive | wc -l)\ntar -C data -czf archive/night-$n.tar.gz .\necho night-$n >> archive.log\n`,
        ),
      ),
      act("It may be run.", "chmod 755 nightly.sh"),
      act("The first night.", "./nightly.sh"),
      act("A day's work.", "echo gamma > data/c.txt; rm data/a.txt"),
      act("The second night.", "./nightly.sh; cat archive.log"),
    ],
    verify: [
      expects("xargs < archive.log", "night-0 night-1", "the log"),
      expects("tar -tzf archive/night-0.tar.gz | grep -c txt", "2", "the first archive"),
      expects("tar -tzf archive/night-1.tar.gz | grep txt | sort | xargs", "./b.txt ./c.txt", "the second archive"),
      `[ -x nightly.sh ] || { echo "not executable"; exit 1; }`,
    ].join("\n"),
  },
];
