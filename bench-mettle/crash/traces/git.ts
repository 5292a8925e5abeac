// Work on repositories: branches, rebases, bisects, conflicts.
import { act, expects, look, type Trace } from "./trace.ts";

const shell = { family: "git", kind: "shell" } as const;
const init = "git init -q -b main .";

export const git: readonly Trace[] = [
  {
    id: "git-bisect",
    ...shell,
    follows: "Terminal-Bench: find the commit that broke a script, by bisecting",
    files: {},
    prepare: `${init}; for i in 1 2 3 4 5 6 7 8; do [ $i -ge 6 ] && echo 'exit 1' > check.sh || echo 'exit 0' > check.sh; echo $i > n; git add .; git commit -qm "step $i"; done`,
    turns: [
      look("The history?", "git log --oneline"),
      act("Begin.", "git bisect start; git bisect bad HEAD"),
      act("The first was good.", "git bisect good $(git rev-list --max-parents=0 HEAD)"),
      act("Let it run.", "git bisect run bash check.sh | tail -n 3"),
      act("Note the culprit.", "git show -s --format=%s refs/bisect/bad > culprit.txt"),
      act("Done.", "git bisect reset"),
    ],
    verify: [
      expects("cat culprit.txt", "step 6", "the culprit"),
      expects("git rev-parse --abbrev-ref HEAD", "main", "the branch"),
      `git bisect log >/dev/null 2>&1 && { echo "still bisecting"; exit 1; }; true`,
    ].join("\n"),
  },
  {
    id: "git-rebase-conflict",
    ...shell,
    follows: "Terminal-Bench: resolve a conflict and leave a linear history",
    files: { "menu.txt": "soup\nbread\n" },
    prepare: `${init}; git add .; git commit -qm base; git checkout -qb feature; printf 'soup\\nrye bread\\n' > menu.txt; git commit -qam rye; echo tea > drinks.txt; git add .; git commit -qm tea; git checkout -q main; printf 'soup\\nwhite bread\\n' > menu.txt; git commit -qam white`,
    turns: [
      look("The branches?", "git log --oneline --graph --all"),
      act("Rebase.", "git checkout -q feature; git rebase main 2>&1 | tail -n 2"),
      act("Both breads.", "printf 'soup\\nwhite bread\\nrye bread\\n' > menu.txt; git add menu.txt"),
      act("Go on.", "GIT_EDITOR=true git rebase --continue 2>&1 | tail -n 1"),
      act("Main follows.", "git checkout -q main && git merge -q --ff-only feature && git branch -d feature"),
    ],
    verify: [
      expects("xargs < menu.txt", "soup white bread rye bread", "the menu"),
      expects("git log --format=%s main | xargs", "tea rye white base", "the history"),
      expects("git branch --format='%(refname:short)' | xargs", "main", "the branches"),
    ].join("\n"),
  },
  {
    id: "git-deploy-hook",
    ...shell,
    follows: "Terminal-Bench: a bare repository whose hook publishes what is pushed to a web server",
    files: { "index.html": "old\n" },
    prepare: `${init}; git add .; git commit -qm first`,
    turns: [
      act("The server's side.", "mkdir -p /srv/site /srv/site.git && git init -q --bare -b main /srv/site.git"),
      act(
        "Its hook.",
        "printf '#!/bin/sh\\nGIT_WORK_TREE=/srv/site git checkout -qf main\\n' > /srv/site.git/hooks/post-receive; chmod 755 /srv/site.git/hooks/post-receive",
      ),
      act(
        "Serve it.",
        `(cd /srv/site && python3 -m http.server 8141 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null &) ; for _ in $(seq 40); do (: </dev/tcp/127.0.0.1/8141) 2>/dev/null && break; sleep 0.05; done`,
      ),
      act("A new page.", "echo new > index.html; git commit -qam second"),
      act("Push.", "git push -q /srv/site.git main"),
      look("What does it serve?", "curl -s localhost:8141/index.html"),
    ],
    verify: [
      expects("curl -s localhost:8141/index.html", "new", "the page"),
      expects("git --git-dir /srv/site.git log -1 --format=%s", "second", "the repository"),
    ].join("\n"),
  },
  {
    id: "git-split-history",
    ...shell,
    files: { "lib/a.txt": "a\n", "app/b.txt": "b\n" },
    prepare: `${init}; git add .; git commit -qm both; echo a2 >> lib/a.txt; git commit -qam lib; echo b2 >> app/b.txt; git commit -qam app`,
    turns: [
      look("Who changed what?", "git log --oneline --stat"),
      act("A clone to work in.", "git clone -q . /opt/lib-only && cd /opt/lib-only"),
      act(
        "Only lib.",
        "FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --subdirectory-filter lib HEAD 2>&1 | tail -n 1",
      ),
      act("It knows no origin.", "git remote remove origin"),
      act("A tag.", "git tag v1 && git rev-list --count HEAD > /opt/count"),
    ],
    verify: [
      expects("cat /opt/count", "2", "the count"),
      expects("cd /opt/lib-only && git ls-tree --name-only v1 && git remote", "a.txt", "the clone"),
      expects("git log --oneline | wc -l", "3", "the source"),
    ].join("\n"),
  },
  {
    id: "git-secret-removed",
    ...shell,
    follows: "Terminal-Bench: remove a secret from a repository's whole history",
    files: { "app.conf": "host=a\n" },
    prepare: `${init}; git add .; git commit -qm one; echo key=hunter2 >> app.conf; git commit -qam two; echo port=1 >> app.conf; git commit -qam three`,
    turns: [
      look("Where is it?", "git log -S hunter2 --oneline"),
      act(
        "Rewrite.",
        'FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --tree-filter "sed -i s/hunter2/REMOVED/ app.conf" HEAD 2>&1 | tail -n 1',
      ),
      act("The old names go.", "git for-each-ref --format='delete %(refname)' refs/original | git update-ref --stdin"),
      act("And what they named.", "git reflog expire --expire=now --all && git gc -q --prune=now"),
      act(
        "It does not happen again.",
        "printf '#!/bin/sh\\n! git diff --cached | grep -q hunter\\n' > .git/hooks/pre-commit && chmod 755 .git/hooks/pre-commit",
      ),
    ],
    verify: [
      `git rev-list --all --objects | cut -d ' ' -f 1 | git cat-file --batch | grep -qa hunter2 && { echo "still in the history"; exit 1; }`,
      `git cat-file --batch-all-objects --batch | grep -qa hunter2 && { echo "still among the objects"; exit 1; }`,
      expects("git show HEAD:app.conf | xargs", "host=a key=REMOVED port=1", "the file"),
      `[ -x .git/hooks/pre-commit ] || { echo "no hook"; exit 1; }`,
    ].join("\n"),
  },
];
