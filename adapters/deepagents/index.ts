// `agentrewind/deepagents`: the environment as a deepagents backend. The middleware is the one of `agentrewind/langchain`.
export { type RewindBackend, type RewindBackendOptions, rewindBackend } from "./backend.ts";
