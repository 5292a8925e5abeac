// What a shell holds: variables, functions, folders, jobs, open files.
import { act, expects, look, type Trace } from "./trace.ts";

const shell = { family: "shells", kind: "shell" } as const;

/** An array's entry, as bash writes it. */
const of = (array: string, index: string): string => `$\{${array}[${index}]}`;
const each = `"$\{!load[@]}"`;

export const shells: readonly Trace[] = [
  {
    id: "shell-deploy-stage",
    ...shell,
    files: { "deploy.sh": "mkdir -p /srv/$STAGE && echo $VERSION > /srv/$STAGE/version\n" },
    turns: [
      look("What does it need?", "cat deploy.sh"),
      act("The stage.", "export STAGE=blue"),
      act("The version.", "export VERSION=4.2"),
      look("Both are set?", "env | grep -E 'STAGE|VERSION'"),
      act("Deploy.", "bash deploy.sh"),
      act("The other one as well.", "STAGE=green; bash deploy.sh"),
    ],
    verify: expects("cat /srv/blue/version /srv/green/version | xargs", "4.2 4.2", "the versions"),
  },
  {
    id: "shell-functions",
    ...shell,
    files: { "points.txt": "3 4\n6 8\n" },
    turns: [
      act("A function.", "dist() { awk -v x=$1 -v y=$2 'BEGIN { print sqrt(x * x + y * y) }'; }"),
      act("A sum.", "total=0; add() { total=$((total + $1)); }"),
      look("Are they known?", "declare -F"),
      act("Over the points.", "while read -r x y; do add $(dist $x $y); done < points.txt"),
      act("And once more by hand.", "add $(dist 5 12)"),
      act("The total.", "echo $total > total.txt"),
    ],
    verify: expects("cat total.txt", "28", "the total"),
  },
  {
    id: "shell-folders",
    ...shell,
    files: { "a/b/c/.x": "", "a/d/.x": "" },
    turns: [
      act("In.", "pushd a/b/c"),
      act("And elsewhere.", "pushd ../../d"),
      look("The stack?", "dirs -v"),
      act("A mark where we are.", "touch here; umask 077"),
      act("Back, and one there.", "popd; touch there"),
      act("And at the top.", "popd; mkdir private; shopt -s dotglob; echo a/d/* > listed"),
    ],
    verify: [
      expects("find . -name here -o -name there | sort | xargs", "./a/b/c/there ./a/d/here", "the marks"),
      expects("stat -c %a private", "700", "the mode"),
      expects("cat listed", "a/d/.x a/d/here", "what was listed"),
    ].join("\n"),
  },
  {
    id: "shell-open-files",
    ...shell,
    files: { "in.txt": "one\ntwo\nthree\nfour\n" },
    turns: [
      act("Open both.", "exec 5< in.txt 6> out.txt"),
      act("The first line.", 'read -r -u 5 line; echo "1:$line" >&6'),
      look("Where do we stand?", "ls -l /proc/$$/fd"),
      act("The second is passed over.", "read -r -u 5 line"),
      act("The third.", 'read -r -u 5 line; echo "3:$line" >&6'),
      act("The end.", "cat <&5 >&6; exec 5<&- 6>&-"),
    ],
    verify: expects("xargs < out.txt", "1:one 3:three four", "the output"),
  },
  {
    id: "shell-arrays-and-trap",
    ...shell,
    follows: "Terminal-Bench: a workflow of many steps in one terminal session",
    files: {},
    turns: [
      act("The hosts.", "declare -A load=([alpha]=3 [beta]=9)"),
      act("Another.", "load[gamma]=7"),
      act("What happens on a signal.", "trap 'echo caught >> caught.txt' USR1"),
      act("A signal.", "kill -USR1 $$"),
      look("What is set?", "declare -p load; trap -p"),
      act(
        "The busiest.",
        `for host in ${each}; do echo ${of("load", "$host")} $host; done | sort -rn | head -n 2 > busy.txt; cat busy.txt`,
      ),
    ],
    verify: [
      expects("xargs < busy.txt", "9 beta 7 gamma", "the busiest"),
      expects("cat caught.txt", "caught", "the signal"),
    ].join("\n"),
  },
  {
    id: "shell-coprocess",
    ...shell,
    files: {},
    turns: [
      act(
        "A calculator beside us.",
        "coproc CALC { total=0; while read -r n; do total=$((total + n)); echo $total; done; }",
      ),
      act("Add.", `echo 30 >&${of("CALC", "1")}; read -r -t 1 sum <&${of("CALC", "0")}`),
      look("What does it say?", "echo $sum; jobs"),
      act("Add more.", `echo 12 >&${of("CALC", "1")}; read -r -t 1 sum <&${of("CALC", "0")}`),
      act("Write it down.", "echo $sum > sum.txt"),
    ],
    verify: expects("cat sum.txt", "42", "the sum"),
  },
];
