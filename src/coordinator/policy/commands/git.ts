// git: what gives up work or rewrites history, what only adds, what only looks.
import type { Rule } from "./action-classes.ts";
import { hasOption, operands, optionValues } from "./arguments.ts";

const readers = new Set(
  "annotate blame cat-file check-ignore check-attr cherry count-objects describe diff diff-tree diff-index diff-files for-each-ref fsck grep help log ls-files ls-remote ls-tree merge-base name-rev rev-list rev-parse shortlog show show-branch show-ref status var verify-commit verify-tag version whatchanged".split(
    " ",
  ),
);
const writers = new Set(
  "add am apply archive bundle cherry-pick clone commit fetch format-patch init merge notes pull revert".split(" "),
);
const losers = new Set(
  "checkout clean filter-branch filter-repo gc prune rebase reset restore rm mv switch update-ref checkout-index read-tree replace".split(
    " ",
  ),
);
/** Options in front of the subcommand whose value is the next word. */
const valued = ["-C", "--git-dir", "--work-tree", "--namespace"];

export const git: Rule = ({ args }) => {
  // Settings for one call may name a program that it runs.
  if (optionValues(args, "-c", "--config-env", "--exec-path").length > 0 && args[0]?.startsWith("-c")) return "unknown";
  const [command, ...all] = operands(args, valued);
  if (command === undefined) return args.length === 0 || hasOption(args, "--version", "--help") ? "read" : "unknown";
  const rest = args.slice(args.indexOf(command) + 1);
  const [sub] = all;
  switch (command) {
    case "push":
      return hasOption(rest, "-f", "--force", "--force-with-lease", "--delete", "-d", "--mirror", "--prune") ||
        all.some((ref) => ref?.startsWith("+") || ref?.startsWith(":"))
        ? ["git", "network"]
        : "network";
    case "branch":
      if (hasOption(rest, "-D", "-d", "--delete", "-M", "-m", "--move", "-f", "--force", "-C")) return "git";
      return all.length > 0 && !hasOption(rest, "--list", "--contains", "--merged", "--no-merged") ? "write" : "read";
    case "tag":
      if (hasOption(rest, "-d", "--delete", "-f", "--force")) return "git";
      return all.length > 0 && !hasOption(rest, "-l", "--list") ? "write" : "read";
    case "stash":
      if (sub === "list" || sub === "show") return "read";
      // It takes the changes out of the files.
      return "git";
    case "remote":
      return sub === undefined || sub === "show" || sub === "get-url" ? "read" : "git";
    case "config":
      return hasOption(rest, "--get", "--get-all", "--list", "-l", "--get-regexp") || all.length === 1
        ? "read"
        : "write";
    case "reflog":
      return sub === "expire" || sub === "delete" ? "git" : "read";
    case "worktree":
      return sub === "list" ? "read" : sub === "add" ? "write" : ["git", "delete"];
    case "submodule":
      return sub === undefined || sub === "status" || sub === "summary" ? "read" : "git";
    case "commit":
      return hasOption(rest, "--amend") ? "git" : "write";
    case "rm":
      return hasOption(rest, "--cached") ? "git" : ["git", "delete"];
    case "bisect":
      return sub === "log" || sub === "view" ? "read" : "git";
    case "apply":
      return hasOption(rest, "--check", "--stat", "--numstat") ? "read" : "overwrite";
    default:
      if (readers.has(command)) return hasOption(rest, "--output", "--ext-diff") ? "unknown" : "read";
      if (losers.has(command)) return hasOption(rest, "-n", "--dry-run") ? "read" : "git";
      return writers.has(command) ? "write" : "unknown";
  }
};
