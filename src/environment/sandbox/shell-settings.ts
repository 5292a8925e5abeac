// What a persistent shell reads when it starts, and what it is told for each command.

/** Names that begin with this are ours in the shell. */
const prefix = "__agentrewind";

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

/** The file that the shell reads for one command; `folder` is the command's, inside. What is read from a file is not told of its jobs' beginnings. */
export const shellCommand = (folder: string, hasInput: boolean): string => `${prefix}_call=${folder}
{ eval "$(<${folder}/command)"; } <${hasInput ? `${folder}/input` : "/dev/null"} >>${folder}/out 2>>${folder}/err
`;

/** The second line is read however the first one ended, an interrupt too, and needs nothing that a command can redefine. */
export const shellLines = (folder: string): string => `. ${folder}/run\n>${folder}/exit-$?`;

/** How the shell said that the command has ended: the name of a file. */
export const shellEnd = /^(exit|signal)-(\d+)$/;
