// What an action may do, by name.

/** Of a command line, or of any tool's call. */
export const actionClasses = [
  /** Looks, and changes nothing. */
  "read",
  /** Makes or changes files, and gives up nothing that was there (mkdir, `>>`, git add). */
  "write",
  /** Puts something in the place of what a file held (mv, cp, dd, `>`, sed -i). */
  "overwrite",
  /** Removes files. */
  "delete",
  /** Gives up work in a repository, or rewrites its history. */
  "git",
  /** Changes what a database holds. */
  "database",
  /** Installs, removes or updates packages. */
  "packages",
  /** Changes machines, containers, services or a cloud. */
  "deploy",
  /** Does something on another machine. */
  "network",
  /** Ends processes. */
  "process",
  /** Changes owners, modes or access lists. */
  "permissions",
  /** Nothing here says what it does. */
  "unknown",
] as const;

export type ActionClass = (typeof actionClasses)[number];

/** The words of one command; undefined for one of which only the running shell knows what it is. */
export type Words = readonly (string | undefined)[];

/** A program with its arguments, as the tables of this folder see it. */
export interface Call {
  /** Without its folder. */
  readonly program: string;
  readonly args: Words;
  /** What it reads, where the line says so (a here-document); undefined where nothing is known of it. */
  readonly input?: string | undefined;
}

/** What a program with these arguments does. */
export type Rule = (call: Call) => ActionClass | readonly ActionClass[];
