// `agentrewind/langgraph`: hand-built graphs whose agent takes back a wrong step, and whose time travel brings the files along.
export { langchainSerializer } from "../graph-state/serializer.ts";
export { rewindCheckpointer } from "./checkpointer.ts";
export { type RewindGraph, type RewindGraphOptions, rewindGraph } from "./graph.ts";
