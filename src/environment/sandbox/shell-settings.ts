// What a persistent shell reads when it starts, and what it is told for each command.

/** Names that begin with this are ours in the shell. */
export const prefix = "__agentrewind";

/**
 * bash, interactive without a terminal: an interrupt ends the command and not the shell. Job control is switched on by the first line that it reads: what the
 * settings say of it is undone when they have been read (bash 5.2). An interactive bash ignores SIGTERM.
 */
export const shellSettings = `PS1= PS2= PS4='+ '
set +o history
shopt -s expand_aliases
trap '>"\${${prefix}_call-/nowhere}/signal-15"; exit 143' TERM
`;

export const jobControl = "set -m";

/**
 * Writes down what the shell knows (shell-state.ts): its own commands, which start no process. `jobs` is not among them: it forgets what it has told. What is not there fails quietly, `set -e` or not.
 */
const tell = [
  "declare -p",
  "declare -fp",
  "declare -Fp",
  "alias -p",
  "shopt -p",
  "shopt -po",
  "trap -p",
  "umask",
  "dirs -p -l",
  "hash -l",
  "enable -a",
  "complete -p",
  "history",
  `printf "%s\\n" "\${!-}" "$0" "$@"`,
]
  .map((command) => `\\builtin ${command}; \\builtin printf "\\0";`)
  .join(" ");

/** The file that the shell reads for one command; `folder` is the command's, inside. What is read from a file is not told of its jobs' beginnings. */
export const shellCommand = (folder: string, hasInput: boolean): string => `${prefix}_call=${folder}
{ eval "$(<${folder}/command)"; } <${hasInput ? `${folder}/input` : "/dev/null"} >>${folder}/out 2>>${folder}/err
${prefix}_status=$?
{ ${tell} } >${folder}/state 2>/dev/null || \\builtin true
\\builtin return $${prefix}_status
`;

/** The second line is read however the first one ended, an interrupt too, and needs nothing that a command can redefine. */
export const shellLines = (folder: string): string => `. ${folder}/run\n>${folder}/exit-$?`;

/** How the shell said that the command has ended: the name of a file. */
export const shellEnd = /^(exit|signal)-(\d+)$/;
