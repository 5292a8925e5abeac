// The part of the Chat Completions wire format that the model server reads and writes.

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export type Content = string | readonly { readonly type: string; readonly text?: string }[];

export type Message =
  | { readonly role: "system" | "developer" | "user"; readonly content: Content }
  | { readonly role: "assistant"; readonly content?: Content | null; readonly tool_calls?: readonly ToolCall[] }
  | { readonly role: "tool"; readonly content: Content; readonly tool_call_id: string };

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly { readonly type: "function"; readonly function: { readonly name: string } }[];
  readonly stream?: boolean | null;
  readonly stream_options?: { readonly include_usage?: boolean } | null;
}

/** What a model answers: text, tool calls, or both. */
export interface Reply {
  readonly content?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly args: unknown; readonly id?: string }[];
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** The text of a message's content; parts that are not text count as nothing. */
export function textOf(content: Content | null | undefined): string {
  if (content === null || content === undefined) return "";
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
}
