// The conformance suites, for whoever implements a room of AgentRewind. They need no test runner.
export { type EnvironmentInitializer, environmentSuite } from "./environment.ts";
export type { ConformanceTest } from "./test.ts";
