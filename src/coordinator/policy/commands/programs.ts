// What a program with its arguments does; what no table names is unknown.
import type { ActionClass, Call, Rule, Words } from "./action-classes.ts";
import { asksForHelp } from "./arguments.ts";
import { databaseRules } from "./databases.ts";
import { fileRules, find } from "./files.ts";
import { git } from "./git.ts";
import { systemRules } from "./systems.ts";
import { decides, unwrapped } from "./wrappers.ts";

/** Shells: a line behind -c is looked into. */
const shells = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"]);
const interpreters = /^(?:python|python\d[\d.]*|php|ruby)$/;
/** Folders whose programs are the ones that their names say. */
const trusted = /^(?:\/usr(?:\/local)?|\/opt\/homebrew)?\/s?bin\//;

const rules: Readonly<Record<string, Rule>> = { ...fileRules, ...databaseRules, ...systemRules, git };

export interface Looking {
  /** What a line for a shell does. */
  line(text: string): readonly ActionClass[];
  /** Functions that the line itself defines: what they do is counted where they are defined. */
  readonly functions: ReadonlySet<string>;
}

/** @param input what the command reads, where the line says so */
export function classesOfWords(words: Words, looking: Looking, input?: string): readonly ActionClass[] {
  const [name, ...args] = words;
  if (words.length === 0) return ["read"];
  if (name === undefined || name === "") return ["unknown"];
  if (looking.functions.has(name)) return ["read"];
  const program = name.slice(name.lastIndexOf("/") + 1);
  const found = classesOfProgram({ program, args, input }, looking);
  // A file of this name that lies elsewhere is somebody's own.
  const own = name.includes("/") && !trusted.test(name) && found.every((one) => one === "read");
  return own ? ["unknown"] : found;
}

function classesOfProgram(call: Call, looking: Looking): readonly ActionClass[] {
  const { program, args } = call;
  const again = (words: Words): readonly ActionClass[] => classesOfWords(words, looking, call.input);
  if (program === "eval") return evaluated(args, looking);
  if (program === "trap") return args.length < 2 ? ["read"] : evaluated(args.slice(0, 1), looking);
  if (program === "alias") return args.length === 0 ? ["read"] : ["unknown"];
  if (program === "set") return args.every((word) => word !== undefined && /^[-+]/.test(word)) ? ["read"] : ["unknown"];
  if (program === "export" || program === "declare" || program === "readonly" || program === "local") {
    return args.some((word) => word === undefined || decides(word.split("=")[0] as string)) ? ["unknown"] : ["read"];
  }
  if (shells.has(program) || program === "su") return ofShell(call, looking);
  if (program === "watch") return evaluated(unwrapped(program, args) ?? [], looking);
  if (program === "command" && (args[0] === "-v" || args[0] === "-V")) return ["read"];
  if (program === "env" && args.some((word) => word === "-S" || word?.startsWith("--split-string"))) return ["unknown"];
  const inner = unwrapped(program, args);
  if (inner !== undefined) {
    const classes = again(inner);
    const variables = args.slice(0, args.length - inner.length);
    const risky = variables.some((word) => word?.includes("=") && decides(word.split("=")[0] as string));
    // What a shell is handed by xargs is in no line.
    const handed = program === "xargs" && shells.has(inner[0] ?? "");
    // "npx eslint": a package of the project's, or one that is fetched for it.
    return risky || handed ? [...classes, "unknown"] : classes;
  }
  if (program === "find") return [find(again)(call)].flat();
  if (interpreters.test(program)) return ofInterpreter(call, looking);
  const rule = Object.hasOwn(rules, program) ? rules[program] : undefined;
  if (rule !== undefined) return asksForHelp(args) && args.length === 1 ? ["read"] : [rule(call)].flat();
  return ["unknown"];
}

/** A line that is made of the words. */
function evaluated(args: Words, { line }: Looking): readonly ActionClass[] {
  if (args.length === 0) return ["read"];
  return args.some((word) => word === undefined) ? ["unknown"] : [...line(args.join(" "))];
}

function ofShell({ args, input }: Call, { line }: Looking): readonly ActionClass[] {
  if (asksForHelp(args)) return ["read"];
  const at = args.findIndex((word) => word !== undefined && /^-[a-z]*c$/.test(word));
  if (at >= 0) {
    const text = args[at + 1];
    return text === undefined ? ["unknown"] : line(text);
  }
  const runsFile = args.some((word) => word === undefined || !word.startsWith("-"));
  return runsFile || input === undefined ? ["unknown"] : line(input);
}

/** "python -m pip" and "python manage.py" are programs of their own. */
function ofInterpreter({ program, args, input }: Call, looking: Looking): readonly ActionClass[] {
  if (asksForHelp(args)) return ["read"];
  const [first, second] = args;
  if (first === "-m" && second !== undefined && Object.hasOwn(rules, second)) {
    return classesOfWords([second, ...args.slice(2)], looking, input);
  }
  const script = first?.slice(first.lastIndexOf("/") + 1);
  if (script === "manage.py" || (program === "php" && script === "artisan")) {
    return classesOfWords([script, ...args.slice(1)], looking, input);
  }
  return ["unknown"];
}
