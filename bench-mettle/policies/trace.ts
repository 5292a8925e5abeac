// A recorded run of an agent with a shell: 60 turns on a small repository, most of which only look.
import { execFileSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The commands of each turn's reply, one call each; a turn without any only says something. */
export const trace: readonly (readonly string[])[] = [
  ["ls -la"],
  ["cat README.md"],
  ["git log --oneline", "git status --short"],
  ["mkdir -p src test"],
  ["printf 'one\\n' > src/app.js"],
  ["cat src/app.js"],
  ["printf 'help\\n' > src/util.js"],
  ["sh -n build.sh"],
  ["git add -A && git commit -qm app"],
  ["git log --oneline"],
  ["grep -rn TODO src || true"],
  ["sed -i 's/one/two/' src/app.js"],
  ["git diff"],
  ["wc -l src/*.js"],
  [],
  ["cp src/app.js src/app.bak"],
  ["rm src/app.bak"],
  ["ls src"],
  ["find . -name '*.js' | sort"],
  ["echo started >> run.log"],
  ["tail run.log"],
  ["true"],
  ["mv src/util.js src/helpers.js"],
  ["git status --short", "ls src"],
  ["git stash -q"],
  ["git stash list"],
  ["git stash pop -q"],
  ["cat src/app.js"],
  ["chmod 755 src/app.js"],
  ["ls -l src"],
  ["touch -d '2020-01-01 00:00:00' src/old.js"],
  ["head -c 20 src/app.js"],
  ["dd if=/dev/zero of=blob.bin bs=1024 count=64 status=none"],
  ["du -sk src"],
  ["truncate -s 100 blob.bin"],
  ["stat -c %s blob.bin"],
  ["git add -A", "git rm -q --cached run.log"],
  ["git diff --cached --stat"],
  ["ln -s src/app.js link"],
  ["readlink link"],
  ["rm -rf src/old.js link"],
  ["ls"],
  [],
  ["./build.sh"],
  ["cat dist/out.txt"],
  ["./build.sh"],
  ["grep name README.md | head -1"],
  ["echo x > tmp.txt && rm tmp.txt"],
  ["git add -A && git commit -qm wip"],
  ["git log -1 --format=%s"],
  ["git reset -q --hard HEAD~1"],
  ["git status --short"],
  ["rm -rf dist"],
  ["ls"],
  ["git clean -fdq"],
  ["ls -a"],
  ["printf 'final\\n' > out.txt"],
  ["cat out.txt"],
  ["[ -f out.txt ] && echo ok"],
  [],
];

/** What the run finds when it begins. */
export function prepare(workspace: string): void {
  writeFileSync(join(workspace, "README.md"), "name: demo\n");
  writeFileSync(join(workspace, "build.sh"), "#!/bin/sh\nmkdir -p dist && cat src/*.js > dist/out.txt\n");
  chmodSync(join(workspace, "build.sh"), 0o755);
  const git = (...args: string[]): void => void execFileSync("git", args, { cwd: workspace, stdio: "ignore" });
  git("init", "-q");
  git("config", "user.name", "agent");
  git("config", "user.email", "agent@example.org");
  // What only looks writes nothing.
  git("config", "diff.autoRefreshIndex", "false");
  git("config", "gc.auto", "0");
  git("add", "-A");
  git("commit", "-qm", "begin");
}

/** Of the commands. */
export const env = { GIT_OPTIONAL_LOCKS: "0", GIT_CONFIG_NOSYSTEM: "1", HOME: "/nonexistent" };
