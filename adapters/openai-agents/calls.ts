// The calls of OpenAI's agents SDK that its runner answers: each kind has a result of its own form.
import { type Call, canonical, type Item, textOfContent } from "agentrewind/relay";

interface Kind {
  /** Type of its result. */
  readonly answer: string;
  name(item: Item): string;
  input(item: Item): unknown;
  /** What of a result is said in this way. Undefined where words cannot make one. */
  readonly result?: (text: string, ran: boolean, call: Item) => Item;
}

const approvalRequest = "mcp_approval_request";
const approvalResponse = "mcp_approval_response";

const dataOf = ({ providerData }: Item): Item => (providerData ?? {}) as Item;
const objectOf = (value: unknown): Item => (value ?? {}) as Item;

const kinds: Readonly<Record<string, Kind>> = {
  function_call: {
    answer: "function_call_result",
    name: ({ name }) => String(name),
    input: (item) => item.arguments ?? "",
    result: (text, _, { name, namespace }) => ({
      name,
      ...(namespace === undefined ? {} : { namespace }),
      status: "completed",
      output: { type: "text", text },
    }),
  },
  shell_call: {
    answer: "shell_call_output",
    name: () => "shell",
    input: (item) => item.action,
    result(text, ran, { action }) {
      const { maxOutputLength } = objectOf(action);
      const said = ran ? { stdout: text, stderr: "" } : { stdout: "", stderr: text };
      return {
        output: [{ ...said, outcome: { type: "exit", exitCode: ran ? 0 : 1 } }],
        ...(maxOutputLength === undefined ? {} : { maxOutputLength }),
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
    answer: "computer_call_result",
    name: () => "computer",
    input: (item) => item.actions ?? item.action,
  },
  [approvalRequest]: {
    answer: approvalResponse,
    name: (item) => String(dataOf(item).name),
    input: (item) => dataOf(item).arguments ?? "",
    result: (reason, _, item) => ({
      type: "hosted_tool_call",
      name: approvalResponse,
      providerData: { approve: false, approval_request_id: idOf(item), reason },
    }),
  },
};

const answers: ReadonlySet<unknown> = new Set(Object.values(kinds).map(({ answer }) => answer));

/** Approvals stand among what the server does itself. */
const typeOf = (item: Item): string => {
  const hosted = item.type === "hosted_tool_call" ? [item.name, dataOf(item).type] : [];
  if (hosted.includes(approvalRequest)) return approvalRequest;
  return hosted.includes(approvalResponse) ? approvalResponse : String(item.type);
};

function idOf(item: Item): string {
  if (typeOf(item) === approvalRequest) return String(dataOf(item).id ?? item.id);
  return String(item.callId ?? item.call_id ?? dataOf(item).call_id);
}

/** A shell in a container of the server's. */
const isContained = (item: Item): boolean =>
  item.type === "shell_call" && String(objectOf(dataOf(item).environment).type).startsWith("container");

const isServers = (item: Item): boolean =>
  isContained(item) ||
  (String(item.type).startsWith("tool_search_") && (item.execution ?? dataOf(item).execution) !== "client");

export function callOf(item: Item): Call | undefined {
  const type = typeOf(item);
  const kind = Object.hasOwn(kinds, type) && !isServers(item) ? kinds[type] : undefined;
  if (kind === undefined) return undefined;
  const input = kind.input(item) ?? {};
  return {
    id: idOf(item),
    name: kind.name(item),
    arguments: typeof input === "string" ? input : canonical(input),
    item,
  };
}

/** The id of a call that the server answers by an item. */
export const providedIn = (item: Item): string[] => (isContained(item) ? [idOf(item)] : []);

/** The id of the call whose result it is. */
export function answeredBy(item: Item): string | undefined {
  const type = typeOf(item);
  if (!answers.has(type) || isServers(item)) return undefined;
  return type === approvalResponse ? String(dataOf(item).approval_request_id) : idOf(item);
}

/** @param ran the words are what the tool returned; else why it did not run */
export function resultOf(call: Call, text: string, ran: boolean): Item | undefined {
  const item = call.item ?? { type: "function_call", callId: call.id, name: call.name };
  const kind = kinds[typeOf(item)];
  if (kind?.result === undefined) return undefined;
  const caller = item.caller === undefined ? {} : { caller: item.caller };
  const id = kind.answer === approvalResponse ? {} : { callId: call.id };
  return { type: kind.answer, ...id, ...kind.result(text, ran, item), ...caller };
}

interface ShellOutput {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly outcome?: { readonly type?: string; readonly exitCode?: number | null };
}

const shellOutputs = ({ output }: Item): readonly ShellOutput[] =>
  Array.isArray(output) ? (output as ShellOutput[]) : [];

export function textOfResult(item: Item): string {
  const { output, type } = item;
  if (type === "shell_call_output") {
    return shellOutputs(item)
      .map(({ stdout = "", stderr = "" }) => stdout + stderr)
      .join("");
  }
  if (typeOf(item) === approvalResponse) {
    const { reason, approve } = dataOf(item);
    return String(reason ?? (approve === true ? "approved" : ""));
  }
  if (type !== "function_call_result") return typeof output === "string" ? output : "";
  if (typeof output === "string" || Array.isArray(output)) return textOfContent(output);
  const { text } = objectOf(output);
  return typeof text === "string" ? text : JSON.stringify(output ?? "");
}

export const hasFailed = (item: Item): boolean =>
  item.status === "incomplete" ||
  item.status === "failed" ||
  (item.type === "shell_call_output" &&
    shellOutputs(item).some(({ outcome }) => outcome?.type === "timeout" || (outcome?.exitCode ?? 0) !== 0));
