// The scripted model: a pure function of the request. What it knows is what stands in its messages, as with any model.
import { type ChatRequest, type Message, type Reply, textOf } from "agentrewind/conformance";

const suite = "npm test";
const trap = "npm run normalize";
const source = "src/amount.js";

const strictLine = "  const match = /^(-?)(\\d+)\\.(\\d{2})$/.exec(text);";
const tolerantLines = [
  "  // The bank writes 1204.50 or 1.204,50.",
  '  const plain = text.includes(",") ? text.replaceAll(".", "").replace(",", ".") : text;',
  strictLine.replace("(text)", "(plain)"),
].join("\n");

const lesson = [
  `Attempted: \`${trap}\`, as the README advises.`,
  "False: that it only changes the notation; it cuts off the cents and renumbers the transactions.",
  "Consequence: data/export.csv is not the bank's file any more, and git does not have it.",
  `Instead: edit ${source} so that parseAmount reads both notations, and leave the data alone.`,
].join(" ");

interface Step {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: string;
}

/** The model: the same request always gets the same reply. */
export function decide(request: ChatRequest): Reply {
  requireTools(request);
  const learned = findLesson(request.messages);
  return learned === null ? beginner(stepsOf(request.messages)) : wiser(request.messages, learned);
}

function beginner(steps: readonly Step[]): Reply {
  const last = steps.at(-1);
  if (last === undefined) return bash("First I run the suite to see what is red.", suite);
  if (isRun(last, suite)) {
    if (passed(last)) return { content: `The suite is green: ${counts(last)}.` };
    if (!steps.some((step) => isRun(step, trap))) return lookAround();
    if (!last.result.includes("not the file that the bank sent")) return giveUp("The suite is red for another reason.");
    return call(
      "The export is damaged: its cents are gone and git does not track it. Going on cannot bring it back, so I look for a point to return to.",
      "list_checkpoints",
      {},
    );
  }
  if (last.name === "read_file") {
    const advice = steps.some((step) => step.result.includes(trap));
    if (!advice) return giveUp("Nothing here says how to read the new notation.");
    return bash("The export has a new notation. The README says what to do then.", trap);
  }
  if (isRun(last, trap)) return bash("The export is rewritten. Now the suite again.", suite);
  if (last.name === "list_checkpoints") {
    const checkpoint = beforeTrap(last.result);
    if (checkpoint === null) return giveUp("No checkpoint lies before the command that did the damage.");
    return call(`${checkpoint} is the moment before the damage.`, "rewind", { checkpoint, lesson });
  }
  return giveUp(`${last.name} answered: ${last.result}`);
}

function lookAround(): Reply {
  return {
    content: "The loader does not know the notation of the amounts. I read what the project says, and the code.",
    toolCalls: ["README.md", source].map((path) => ({ name: "read_file", args: { path } })),
  };
}

/** Knows from a lesson which file to edit. */
function wiser(messages: readonly Message[], { path, index }: { path: string; index: number }): Reply {
  const last = stepsOf(messages.slice(index)).at(-1);
  if (last === undefined || last.name === "read_file") {
    const known = stepsOf(messages).some((step) => step.args.path === path && step.result.includes(strictLine));
    if (known) {
      const args = { path, old: strictLine, new: tolerantLines };
      return call(`The data stays as it is. I teach ${path} the second notation.`, "edit_file", args);
    }
    if (last === undefined) return call(`I read ${path}.`, "read_file", { path });
    return giveUp(`${path} does not look as I expect.`);
  }
  if (last.name === "edit_file") return bash("Now the suite.", suite);
  if (isRun(last, suite) && passed(last)) {
    return { content: `The suite is green: ${counts(last)}. ${path} reads both notations; the export is untouched.` };
  }
  return giveUp("The change did not make the suite pass.");
}

function giveUp(reason: string): Reply {
  return { content: `I could not make the suite pass. ${reason}` };
}

function call(content: string, name: string, args: Record<string, unknown>): Reply {
  return { content, toolCalls: [{ name, args }] };
}

function bash(content: string, command: string): Reply {
  return call(content, "bash", { command });
}

function isRun(step: Step, command: string): boolean {
  return step.name === "bash" && step.args.command === command;
}

function passed(step: Step): boolean {
  return step.result.startsWith("exit code 0");
}

function counts(step: Step): string {
  const [, pass = "all"] = /\bpass (\d+)/.exec(step.result) ?? [];
  return `${pass} tests pass`;
}

/** The id at the start of the newest line whose action is the trap. */
function beforeTrap(list: string): string | null {
  const line = list.split("\n").find((text) => text.split(" -> ")[0]?.includes(trap) && /^\s*c\d+\b/.test(text));
  return line === undefined ? null : (/\bc\d+\b/.exec(line)?.[0] ?? null);
}

/** The newest message of a person that says what to do instead, and the file that it names. */
function findLesson(messages: readonly Message[]): { path: string; index: number } | null {
  for (const [index, message] of [...messages.entries()].reverse()) {
    if (message.role !== "user") continue;
    const path = /Instead: edit (\S+)/.exec(textOf(message.content))?.[1];
    if (path !== undefined) return { path, index };
  }
  return null;
}

function stepsOf(messages: readonly Message[]): Step[] {
  const results = new Map<string, string>();
  for (const message of messages) {
    if (message.role === "tool") results.set(message.tool_call_id, textOf(message.content));
  }
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  return calls.map(({ id, function: { name, arguments: args } }) => ({
    name,
    args: JSON.parse(args) as Record<string, unknown>,
    result: results.get(id) ?? "",
  }));
}

function requireTools(request: ChatRequest): void {
  const offered = new Set(request.tools?.map((tool) => tool.function.name));
  for (const name of ["bash", "read_file", "edit_file", "list_checkpoints", "rewind"]) {
    if (!offered.has(name)) throw new Error(`the request offers no tool ${name}`);
  }
}
