// The conformance suites, for whoever implements a room of AgentRewind or an adapter. They need no test runner.
export { adapterSuite } from "./adapter.ts";
export type { AdapterInitializer, AdapterRun, AdapterScene, SceneTool } from "./adapter-scene.ts";
export { environmentSuite } from "./environment.ts";
export type { EnvironmentInitializer } from "./environment-check.ts";
export { type ModelServer, type ModelServerOptions, startModelServer } from "./model-server/server.ts";
export { type ChatRequest, type Message, type Reply, textOf } from "./model-server/wire.ts";
export type { ConformanceTest } from "./test.ts";
