// For adapters of loops that own their list of messages, and for the proxy.

export * from "../wire/index.ts";
export { storedFormat } from "./conversation.ts";
export type { Replay } from "./log.ts";
export {
  type ConversationHandle,
  type ConversationOptions,
  handleOf,
  openRelay,
  type RunTool,
  recordTools,
  runRecorded,
} from "./open.ts";
export { ownTools } from "./own-tools.ts";
export { Relay } from "./relay.ts";
export type { Ask, AskOptions, HumanMessages, ModelReply, Relayed, RelayOptions, RelayTurn } from "./types.ts";
