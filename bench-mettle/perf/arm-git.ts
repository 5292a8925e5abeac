// What coding agents do with git: a shadow repository outside of the tree, and `git stash create` in a tree that is a repository.
import { join } from "node:path";
import type { Arm, Place, Running } from "./arm.ts";
import { run, time } from "./command.ts";

const settings = [
  "core.autocrlf=false",
  "core.safecrlf=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "user.name=bench",
  "user.email=bench@localhost",
  "init.defaultBranch=main",
].flatMap((one) => ["-c", one]);

function gitIn({ work, scratch }: Place, ...before: string[]): (...args: string[]) => string {
  const env = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_ATTR_NOSYSTEM: "1" };
  return (...args) => run(["git", ...settings, ...before], args, { cwd: work, home: scratch, env }).trim();
}

export const shadowGitArm: Arm = {
  name: "git",
  title: "shadow git",
  about:
    "git folder outside of the tree, `add -A -f` + `write-tree`; rewind: `read-tree -u --reset` + `clean -fdx`. Loose objects without fsync. Keeps no empty folders, times, owners or attributes.",
  async start(place: Place): Promise<Running> {
    const folder = join(place.store, "git");
    gitIn(place)("init", "-q", "--bare", folder);
    const git = gitIn(place, `--git-dir=${folder}`, `--work-tree=${place.work}`);
    let tree = "";
    return {
      stored: place.store,
      checkpoint: async () =>
        time(() => {
          git("add", "-A", "-f", ".");
          tree = git("write-tree");
        }),
      rewind: async () =>
        time(() => {
          git("read-tree", "-u", "--reset", tree);
          git("clean", "-fdxq");
        }),
      async end() {},
    };
  },
};

export const stashArm: Arm = {
  name: "stash",
  title: "git stash create",
  about:
    "the tree is a repository; first: `add -A -f` + `commit`, then `stash create`; rewind: `reset --hard` + `stash apply`. Without fsync of loose objects. Sees tracked files only.",
  async start(place: Place): Promise<Running> {
    const git = gitIn(place);
    git("init", "-q");
    let committed = false;
    let stash = "";
    return {
      stored: join(place.work, ".git"),
      checkpoint: async () =>
        time(() => {
          if (committed) stash = git("stash", "create");
          else {
            git("add", "-A", "-f", ".");
            git("commit", "-q", "-m", "first");
            committed = true;
          }
        }),
      rewind: async () =>
        time(() => {
          git("reset", "-q", "--hard");
          if (stash !== "") git("stash", "apply", "-q", stash);
        }),
      async end() {},
    };
  },
};
