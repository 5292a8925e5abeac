// Pipelines over named pipes, and programs that talk with each other.
import { act, expects, look, type Trace, until, write } from "./trace.ts";

const shell = { family: "pipelines", kind: "shell" } as const;
const send = (pipe: string, line: string): string => `timeout 1 bash -c "echo ${line} > ${pipe}"`;

export const pipelines: readonly Trace[] = [
  {
    id: "pipe-running-total",
    ...shell,
    files: {},
    turns: [
      act("The pipe.", "mkfifo feed"),
      act(
        "A reader that sums up.",
        "(sum=0; while read -r n; do sum=$((sum + n)); echo $sum >> sums; done) <> feed >/dev/null 2>&1 &",
      ),
      act("A number.", `${send("feed", "12")}; ${until("[ -s sums ]")}`),
      act("Another.", `${send("feed", "30")}; ${until('[ "$(tail -n 1 sums)" = 42 ]')}`),
      look("So far?", "cat sums"),
      act("The last.", `${send("feed", "58")}; ${until('[ "$(tail -n 1 sums)" = 100 ]')}; xargs < sums > result`),
    ],
    verify: expects("cat result", "12 42 100", "the sums"),
  },
  {
    id: "pipe-request-reply",
    ...shell,
    files: {
      "dict.sh":
        "declare -A word\nexec 3<>ask 4<>told\nwhile read -r -u 3 verb key value; do\n  case $verb in put) word[$key]=$value; echo ok >&4;; get) echo $'{word[$key]}' >&4;; esac\ndone\n",
    },
    turns: [
      look("The program?", "cat dict.sh"),
      act(
        "Its quotes are wrong.",
        write(
          "dict.sh",
          `declare -A word\nexec 3<>ask 4<>told\nwhile read -r -u 3 verb key value; do\n  case $verb in put) word[$key]=$value; echo ok >&4;; get) echo "\${word[$key]}" >&4;; esac\ndone\n`,
        ),
      ),
      act("Start it.", "mkfifo ask told; bash dict.sh >/dev/null 2>&1 </dev/null & exec 8<>ask 9<>told"),
      act(
        "Teach it.",
        "echo put sun sol >&8; read -r -t 1 answer <&9; echo put moon luna >&8; read -r -t 1 answer <&9",
      ),
      act(
        "Ask it.",
        "for w in moon sun; do echo get $w >&8; read -r -t 1 answer <&9; echo $answer; done > answers.txt; cat answers.txt",
      ),
    ],
    verify: expects("xargs < answers.txt", "luna sol", "the answers"),
  },
  {
    id: "pipe-tee-split",
    ...shell,
    files: { "events.txt": "a 1\nb 2\na 3\nc 4\nb 5\n" },
    turns: [
      look("The events?", "cat events.txt"),
      act("One file for each kind.", "mkdir -p by && awk '{ print $2 > \"by/\" $1 }' events.txt"),
      act(
        "Their sums.",
        "for f in by/*; do echo $(basename $f) $(paste -sd+ $f | bc 2>/dev/null || awk '{ s += $1 } END { print s }' $f); done > sums.txt",
      ),
      act("The largest.", "sort -k2,2nr -k1,1 sums.txt | head -n 1 > top.txt"),
      act("Packed away.", "tar -czf by.tar.gz by && rm -r by"),
    ],
    verify: [
      expects("cat top.txt", "b 7", "the largest"),
      expects("tar -tzf by.tar.gz | grep -c by/.", "3", "the archive"),
      `[ ! -e by ] || { echo "by is still there"; exit 1; }`,
      expects("xargs < sums.txt", "a 4 b 7 c 4", "the sums"),
    ].join("\n"),
  },
];
