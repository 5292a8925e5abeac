// What a call of a tool may do, from what is declared of the tool, its name, and of a shell from its command line.
import type { ActionClass, Words } from "./commands/action-classes.ts";
import { classifyCommand, classifyWords } from "./commands/classify.ts";

/** A call as a model made it. */
export interface ActionCall {
  readonly tool: string;
  /** The arguments: plain JSON, or its text. */
  readonly input: unknown;
}

/** Effect classes and "destructive", as tools are declared (`effects`, `destructive`). */
export const declaredClasses = ["idempotent", "reversible", "compensable", "irreversible", "destructive"] as const;
export type DeclaredClass = (typeof declaredClasses)[number];

/** What a policy can ask for. */
export type PolicyClass = ActionClass | DeclaredClass;

export interface Declarations {
  /** By a tool's name: what `capture.tools` says of it. */
  readonly tools: Readonly<Record<string, PolicyClass | readonly PolicyClass[]>>;
  /** What else is declared of it. */
  declared(tool: string): readonly DeclaredClass[];
}

/** Tools that run a command line: ours and those of others. */
const shellNames =
  /^(?:bash|sh|shell|exec|execute|terminal|command|run_command|run_shell_command|execute_command|local_shell|shell_command|run_terminal_cmd|run_in_terminal|execute_bash|run_bash|container\.exec)$/i;
const lineFields = ["command", "cmd", "script", "commands", "line", "input"];

/** Tools for files under the names by which they are common, ours among them. */
const fileTools: Readonly<Record<string, ActionClass>> = {
  read: "read",
  list: "read",
  ls: "read",
  glob: "read",
  grep: "read",
  read_file: "read",
  list_dir: "read",
  list_directory: "read",
  list_files: "read",
  search_files: "read",
  write_todos: "read",
  list_checkpoints: "read",
  checkpoint: "read",
  rewind: "read",
  write: "overwrite",
  edit: "overwrite",
  multiedit: "overwrite",
  write_file: "overwrite",
  edit_file: "overwrite",
  apply_patch: "overwrite",
  str_replace: "overwrite",
  create_file: "overwrite",
  delete_file: "delete",
  move_file: "overwrite",
  create_directory: "write",
};

/** Never empty: what nothing is known of is "unknown". */
export function classesOfCall({ tool, input }: ActionCall, { tools, declared }: Declarations): readonly PolicyClass[] {
  if (Object.hasOwn(tools, tool)) return [tools[tool] as PolicyClass | readonly PolicyClass[]].flat();
  const known = declared(tool);
  const own = classesByName(tool.toLowerCase(), input);
  return known.length > 0 && own === undefined ? known : [...known, ...(own ?? ["unknown" as const])];
}

function classesByName(name: string, input: unknown): readonly ActionClass[] | undefined {
  if (shellNames.test(name)) return classesOfLine(input);
  return Object.hasOwn(fileTools, name) ? [fileTools[name] as ActionClass] : undefined;
}

function classesOfLine(input: unknown): readonly ActionClass[] {
  const args = typeof input === "string" ? parsed(input) : input;
  if (typeof args === "string") return classifyCommand(args);
  if (isWords(args)) return classifyWords(args);
  if (typeof args !== "object" || args === null) return ["unknown"];
  // OpenAI's own shell gives its arguments one level deeper.
  const given = "action" in args ? args.action : args;
  if (typeof given !== "object" || given === null) return ["unknown"];
  const lines = lineFields.flatMap((field) =>
    Object.hasOwn(given, field) ? [given[field as keyof typeof given]] : [],
  );
  const [line] = lines as unknown[];
  if (lines.length !== 1) return ["unknown"];
  if (typeof line === "string") return classifyCommand(line);
  return isWords(line) ? classifyList(line, "commands" in given) : ["unknown"];
}

const isWords = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((word) => typeof word === "string");

/** A list is the words of one command, or, called "commands", lines. */
const classifyList = (list: Words & readonly string[], lines: boolean): readonly ActionClass[] =>
  lines ? classifyCommand(list.join("\n")) : classifyWords(list);

/** JSON, or the text itself where it is none. */
function parsed(text: string): unknown {
  if (!/^\s*[[{"]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    // Half of some JSON is no command.
    return undefined;
  }
}
