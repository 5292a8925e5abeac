// The calls of the Responses API that the caller answers: each kind has a result of its own form.
import { type Call, type Item, textOfContent } from "./format.ts";

interface Kind {
  /** Type of its result. */
  readonly answer: string;
  name(item: Item): string;
  /** What the tool is given: text, or JSON. */
  input(item: Item): unknown;
  /** What of a result is said in this way. Undefined where words cannot make one. */
  readonly result?: (text: string, ran: boolean, call: Item) => Item;
}

const nameOf = ({ name }: Item): string => String(name);
const objectOf = (value: unknown): Item => (typeof value === "object" && value !== null ? (value as Item) : {});
const output = (text: string): Item => ({ output: text });

const kinds: Readonly<Record<string, Kind>> = {
  function_call: {
    answer: "function_call_output",
    name: nameOf,
    input: (item) => item.arguments ?? "",
    result: output,
  },
  custom_tool_call: {
    answer: "custom_tool_call_output",
    name: nameOf,
    input: (item) => item.input ?? "",
    result: output,
  },
  local_shell_call: {
    answer: "local_shell_call_output",
    name: () => "local_shell",
    input: (item) => item.action,
    // The API's schema has the call's id under both names.
    result: (text, ran, { call_id: id }) => ({ id, output: text, status: ran ? "completed" : "incomplete" }),
  },
  shell_call: {
    answer: "shell_call_output",
    name: () => "shell",
    input: (item) => item.action,
    result(text, ran, { action }) {
      const length = objectOf(action).max_output_length;
      const said = ran ? { stdout: text, stderr: "" } : { stdout: "", stderr: text };
      return {
        output: [{ ...said, outcome: { type: "exit", exit_code: ran ? 0 : 1 } }],
        ...(typeof length === "number" ? { max_output_length: length } : {}),
      };
    },
  },
  apply_patch_call: {
    answer: "apply_patch_call_output",
    name: () => "apply_patch",
    input: (item) => item.operation,
    result: (text, ran) => ({ status: ran ? "completed" : "failed", output: text }),
  },
  tool_search_call: {
    answer: "tool_search_output",
    name: () => "tool_search",
    input: (item) => item.arguments,
    result: () => ({ execution: "client", status: "completed", tools: [] }),
  },
  // Its result is an image.
  computer_call: {
    answer: "computer_call_output",
    name: () => "computer",
    input: (item) => item.actions ?? item.action,
  },
  mcp_approval_request: {
    answer: "mcp_approval_response",
    name: nameOf,
    input: (item) => item.arguments ?? "",
    result: (text) => ({ approve: false, reason: text }),
  },
};

const answers: ReadonlySet<unknown> = new Set(Object.values(kinds).map(({ answer }) => answer));

/** A shell in a container of the server's. */
const isContained = ({ type, environment }: Item): boolean =>
  type === "shell_call" && String(objectOf(environment).type).startsWith("container");

const isServers = (item: Item): boolean =>
  isContained(item) || (String(item.type).startsWith("tool_search_") && item.execution !== "client");

const kindOf = (item: Item): Kind | undefined =>
  typeof item.type === "string" && Object.hasOwn(kinds, item.type) && !isServers(item) ? kinds[item.type] : undefined;

export function callOf(item: Item): Call | undefined {
  const kind = kindOf(item);
  if (kind === undefined) return undefined;
  const input = kind.input(item) ?? {};
  return {
    id: String(item.type === "mcp_approval_request" ? item.id : item.call_id),
    name: kind.name(item),
    arguments: typeof input === "string" ? input : JSON.stringify(input),
    item,
  };
}

/** The id of a call that the server answers by an item. */
export const providedIn = (item: Item): string[] => (isContained(item) ? [String(item.call_id)] : []);

/** The id of the call whose result it is. */
export function answeredBy(item: Item): string | undefined {
  if (!answers.has(item.type) || isServers(item)) return undefined;
  return String(item.type === "mcp_approval_response" ? item.approval_request_id : (item.call_id ?? item.id));
}

/** @param ran the words are what the tool returned; else why it did not run */
export function resultOf(call: Call, text: string, ran: boolean): Item | undefined {
  const item = call.item ?? { type: "function_call", call_id: call.id };
  const kind = kindOf(item);
  if (kind?.result === undefined) return undefined;
  const id = item.type === "mcp_approval_request" ? { approval_request_id: call.id } : { call_id: call.id };
  const caller = item.caller === undefined || item.caller === null ? {} : { caller: item.caller };
  return { type: kind.answer, ...id, ...kind.result(text, ran, item), ...caller };
}

interface ShellOutput {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly outcome?: { readonly type?: string; readonly exit_code?: number };
}

const shellOutputs = ({ output: all }: Item): readonly ShellOutput[] =>
  Array.isArray(all) ? (all as ShellOutput[]) : [];

export function textOfResult(item: Item): string {
  if (item.type === "shell_call_output") {
    return shellOutputs(item)
      .map(({ stdout = "", stderr = "" }) => stdout + stderr)
      .join("");
  }
  if (item.type === "mcp_approval_response") return String(item.reason ?? (item.approve === true ? "approved" : ""));
  return textOfContent(item.output);
}

export const hasFailed = (item: Item): boolean =>
  item.status === "incomplete" ||
  item.status === "failed" ||
  (item.type === "shell_call_output" &&
    shellOutputs(item).some(({ outcome }) => outcome?.type === "timeout" || (outcome?.exit_code ?? 0) !== 0));
