import { defineConfig } from "vitest/config";

const shared = { testTimeout: 300_000, hookTimeout: 300_000, pool: "forks" as const };
/** Quick, and without root or child processes. */
const unit = ["test/unit/**/*.test.ts", "test/model-server.test.ts", "test/boundaries.test.ts"];

export default defineConfig({
  resolve: { conditions: ["agentrewind-source"] },
  ssr: { resolve: { conditions: ["agentrewind-source"] } },
  test: {
    projects: [
      { extends: true, test: { name: "unit", include: unit, ...shared } },
      { extends: true, test: { name: "real", include: ["test/**/*.test.ts"], exclude: unit, ...shared } },
    ],
  },
});
