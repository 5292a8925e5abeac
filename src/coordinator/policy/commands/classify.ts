// What a command line does, as far as it says so itself; in doubt "unknown".
import { type Command, forEachChild, parse, type Redirection, type SyntaxNode, type Word } from "unbash";
import { type ActionClass, actionClasses, type Words } from "./action-classes.ts";
import { classesOfWords, type Looking } from "./programs.ts";
import { decides } from "./wrappers.ts";

/** Lines in lines (`bash -c 'bash -c …'`) that are looked into. */
const deepest = 8;
/** Longer ones are programs, not commands. */
const longest = 64 * 1024;

/** What only the running shell knows. */
const dynamicParts: ReadonlySet<string> = new Set([
  "SimpleExpansion",
  "ParameterExpansion",
  "CommandExpansion",
  "ArithmeticExpansion",
  "ProcessSubstitution",
]);

/** The classes of all commands in a line, in the order of `actionClasses`; "read" only where there is no other. Never empty. */
export function classifyCommand(line: string): readonly ActionClass[] {
  return sorted(classesOf(line, 0));
}

/** The same of a command that is given as words, without a shell. */
export function classifyWords(words: Words): readonly ActionClass[] {
  const looking: Looking = { line: (text) => [...classesOf(text, 1)], functions: new Set() };
  return sorted(new Set(classesOfWords(words, looking)));
}

function sorted(found: ReadonlySet<ActionClass>): readonly ActionClass[] {
  const kept = actionClasses.filter((one) => one !== "read" && found.has(one));
  return kept.length === 0 ? ["read"] : kept;
}

function classesOf(line: string, depth: number): ReadonlySet<ActionClass> {
  const found = new Set<ActionClass>();
  if (depth > deepest || line.length > longest || line.includes("\0")) return found.add("unknown");
  const functions = new Set<string>();
  const commands: Command[] = [];
  const visit = (node: SyntaxNode): void => {
    if ("errors" in node && Array.isArray(node.errors) && node.errors.length > 0) found.add("unknown");
    if (node.type === "Function") functions.add(node.name.value);
    if (node.type === "Command") commands.push(node);
    if (node.type === "CommandExpansion" || node.type === "ProcessSubstitution") {
      if (node.script === undefined) found.add("unknown");
    }
    if (node.type === "Assignment" && decides(node.name)) found.add("unknown");
    if (node.type === "Redirect") for (const one of classesOfRedirection(node)) found.add(one);
    forEachChild(node, visit);
  };
  try {
    visit(parse(line));
    const looking: Looking = { line: (text) => [...classesOf(text, depth + 1)], functions };
    for (const command of commands) {
      const words = command.name === undefined ? [] : [command.name, ...command.args].map(wordOf);
      for (const one of classesOfWords(words, looking, inputOf(command.redirects))) found.add(one);
    }
  } catch {
    // The parser recovers from what is no shell; what it cannot take at all (nested beyond its depth) is judged by nobody.
    found.add("unknown");
  }
  return found;
}

type Argument = Command["args"][number];

function wordOf(word: Argument): string | undefined {
  // "a=b" behind "export" and its like.
  if (word.type === "Assignment") return "type" in word.value && word.value.type === "Word" ? word.text : undefined;
  return isLiteral(word) ? word.value : undefined;
}

function isLiteral(node: SyntaxNode): boolean {
  let literal = true;
  forEachChild(node, (child) => {
    if (dynamicParts.has(child.type) || !isLiteral(child)) literal = false;
  });
  return literal;
}

function inputOf(redirects: readonly Redirection[]): string | undefined {
  const last = redirects.findLast((one) => one.type !== "Redirect" || one.operator.startsWith("<"));
  if (last?.type === "HereString") return last.target === undefined ? undefined : wordOf(last.target);
  if (last?.type !== "HereDoc") return undefined;
  return last.delimiter?.quoted === true || isLiteral(last.body) ? last.body.text : undefined;
}

function classesOfRedirection(node: Extract<Redirection, { type: "Redirect" }>): readonly ActionClass[] {
  const { operator } = node;
  const target: string | undefined = node.target === undefined ? undefined : wordOf(node.target as Word);
  if (target?.startsWith("/dev/tcp/") === true || target?.startsWith("/dev/udp/") === true) return ["network"];
  if (operator === "<" || operator === "<&") return [];
  if (operator === ">&" && target !== undefined && /^(?:\d+-?|-)$/.test(target)) return [];
  if (target !== undefined && /^\/dev\/(?:null|stdout|stderr|tty|fd\/\d+)$/.test(target)) return [];
  return operator === ">>" || operator === "&>>" ? ["write"] : ["overwrite"];
}
