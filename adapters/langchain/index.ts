// `agentrewind/langchain`: the middleware that lets a createAgent agent take back a wrong step.

export { langchainSerializer } from "../graph-state/serializer.ts";
export { environmentTools } from "./environment-tools.ts";
export { type RewindMiddleware, type RewindMiddlewareOptions, rewindMiddleware } from "./middleware.ts";
