// The commands and their options; each command's own file is loaded when it runs.
import { Command, InvalidArgumentError, Option } from "commander";
import { type GivenOptions, type Global, toGlobal } from "./global.ts";
import type { Output } from "./output.ts";
import { packageVersion } from "./version.ts";

export type Run = (name: string, global: Global, work: (global: Global) => Promise<Output>) => Promise<void>;

/** @param json whether errors are told as JSON, so that no help goes with them */
export function makeProgram(json: boolean, run: Run): Command {
  const program = new Command("agentrewind")
    .description("Takes a wrong step back: files and conversation return to an earlier checkpoint together.")
    .version(packageVersion())
    .option("--workspace <dir>", "the directory that the agent works in (default: the current one)")
    .option("--store <dir>", "the store (default: the user's, $XDG_STATE_HOME/agentrewind)")
    .option("--thread <id>", "the thread (default: the one most recently active in the workspace)")
    .option("--json", "one JSON object or array on stdout, errors as JSON on stderr")
    .option("--allow-broad", "allow the home folder or one above it as workspace")
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      outputError: () => {},
      writeErr: (text) => void (json || process.stderr.write(text)),
    })
    .exitOverride();

  const start = (command: Command, work: (global: Global) => Promise<Output>): Promise<void> =>
    run(command.name(), toGlobal(command.optsWithGlobals<GivenOptions>()), work);

  program
    .command("doctor")
    .description("what this machine can do, and how to get the rest")
    .option("--clean", "remove what killed owners of sandboxes left: mounts, control groups, unfinished images")
    .action((options, command: Command) =>
      start(command, async (global) => (await import("./doctor.ts")).doctor(global, options)),
    );

  program
    .command("checkpoint")
    .description("record the workspace as it is now")
    .option("--label <text>", "a name to find it by; labelled checkpoints are always kept")
    .action((options, command: Command) =>
      start(command, async (global) => (await import("./checkpoint.ts")).checkpoint(global, options)),
    );

  program
    .command("list")
    .description("the checkpoints, oldest first")
    .option("--all", "the abandoned branches too, as a tree")
    .action((options, command: Command) =>
      start(command, async (global) => (await import("./list.ts")).list(global, options)),
    );

  program
    .command("show <id>")
    .description("everything about one checkpoint")
    .action((id: string, _, command: Command) =>
      start(command, async (global) => (await import("./show.ts")).show(global, id)),
    );

  program
    .command("stats")
    .description("what the turns changed, and what their checkpoints cost")
    .action((_, command: Command) => start(command, async (global) => (await import("./stats.ts")).stats(global)));

  program
    .command("diff <a> [b]")
    .description("what differs between two checkpoints, or between one and the workspace now")
    .action((a: string, b: string | undefined, _, command: Command) =>
      start(command, async (global) => (await import("./diff.ts")).diff(global, a, b)),
    );

  program
    .command("rewind <id>")
    .description("go back to a checkpoint; nothing is lost, undo returns")
    .option("--lesson <text>", "what the agent should know from now on")
    .option("--dry-run", "say what would happen, and change nothing")
    .addOption(
      new Option("--scope <scope>", "what goes back (default: both)").choices(["both", "environment", "context"]),
    )
    .option("--verify <command>", "must succeed in the restored files, or everything is put back")
    .action((id: string, options, command: Command) =>
      start(command, async (global) => (await import("./rewind.ts")).rewind(global, id, options)),
    );

  program
    .command("restore <id> <path...>")
    .usage("[options] ID -- PATH...")
    .description("take back only some files or folders; the rest and the conversation stay")
    .option("--lesson <text>", "what the agent should know from now on")
    .option("--dry-run", "say what would happen, and change nothing")
    .action((id: string, paths: string[], options, command: Command) =>
      start(command, async (global) => (await import("./restore.ts")).restore(global, id, paths, options)),
    );

  program
    .command("undo")
    .description("undo the last rewind")
    .option("--dry-run", "say what would happen, and change nothing")
    .action((options, command: Command) =>
      start(command, async (global) => (await import("./undo.ts")).undo(global, options)),
    );

  program
    .command("fork <id>")
    .description("make independent workspaces that go on from a checkpoint")
    .requiredOption("--into <dir>", "the new folder; of more than one, its subfolders 1, 2, ...")
    .option("--count <n>", "how many (default: 1)", wholeNumber)
    .action((id: string, options, command: Command) =>
      start(command, async (global) => (await import("./fork.ts")).fork(global, id, options)),
    );

  program
    .command("apply [path...]")
    .description("bring what was made in a sandbox back to the host; what both changed is named and left alone")
    .option("--overwrite", "take from the sandbox what both changed, too")
    .option("--dry-run", "say what would happen, and change nothing")
    .action((paths: string[], options, command: Command) =>
      start(command, async (global) => (await import("./apply.ts")).apply(global, paths, options)),
    );

  program
    .command("export [id]")
    .description("write the thread, or one checkpoint of it, into one file: conversation, files, processes, effects")
    .requiredOption("--to <file>", "the new file, outside of the workspace; it holds whatever these hold, secrets too")
    .action((id: string | undefined, options, command: Command) =>
      start(command, async (global) => (await import("./export.ts")).exportBundle(global, id, options)),
    );

  program
    .command("import <file>")
    .description("make a workspace with the thread that such a file holds; import only from whom you trust")
    .option("--into <dir>", "the new workspace (default: a folder here, of the name that it had)")
    .addOption(
      new Option("--processes <fate>", "what becomes of a sandbox's processes (default: restore)").choices([
        "restore",
        "relaunch",
        "stop",
      ]),
    )
    .action((file: string, options, command: Command) =>
      start(command, async (global) => (await import("./import.ts")).importBundle(global, file, options)),
    );

  program
    .command("exec <command...>")
    .usage("[options] -- CMD...")
    .description("run a command in the workspace, with a checkpoint before and after")
    .action((words: string[], _, command: Command) =>
      start(command, async (global) => (await import("./exec.ts")).exec(global, words)),
    );

  program
    .command("observe <command...>")
    .usage("[options] -- CMD...")
    .description("run an agent, capture nothing, and say what its turns changed and which policy fits")
    .option(
      "--pause <ms>",
      "of a program that does not use AgentRewind: how long a pause ends a turn (default: 2000)",
      wholeNumber,
    )
    .action((words: string[], options, command: Command) =>
      start(command, async (global) => (await import("./observe.ts")).observe(global, words, options)),
    );

  program
    .command("prune")
    .description("give up old checkpoints and give their room back; labelled ones and heads are kept")
    .option("--keep-last <n>", "keep the newest N of each thread")
    .option("--keep-within <time>", "keep what is not older: 90m, 12h, 7d, 2w")
    .option("--dry-run", "say what would go, and change nothing")
    .action((options, command: Command) =>
      start(command, async (global) => (await import("./prune.ts")).prune(global, options)),
    );

  program
    .command("gc")
    .description("take out of the store what no checkpoint needs")
    .action((_, command: Command) => start(command, async (global) => (await import("./gc.ts")).gc(global)));

  program
    .command("verify")
    .description("check that everything is there and whole that the checkpoints need")
    .action((_, command: Command) => start(command, async (global) => (await import("./verify.ts")).verify(global)));

  return program;
}

function wholeNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number.");
}
