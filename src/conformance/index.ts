// The conformance suites, for whoever implements a room of AgentRewind. They need no test runner.
export { environmentSuite } from "./environment.ts";
export type { EnvironmentInitializer } from "./environment-check.ts";
export type { ConformanceTest } from "./test.ts";
