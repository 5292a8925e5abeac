import { defineConfig } from "vitest/config";

const limits = { testTimeout: 300_000, hookTimeout: 300_000, pool: "forks" as const };
/** Two files at a time, also on two cores: they wait for the disk and for their children. */
const together = { ...limits, maxWorkers: 2 };
/** Quick, and without root or child processes. */
const unit = ["test/unit/**/*.test.ts", "test/model-server.test.ts", "test/boundaries.test.ts"];
/** About what the whole machine shares (its mounts, its kernel's settings, who uses AIO): at the end, one after the other. */
const alone = ["test/watch.test.ts"];
const real = { globalSetup: "test/helpers/library-setup.ts" };

export default defineConfig({
  resolve: { conditions: ["agentrewind-source"] },
  ssr: { resolve: { conditions: ["agentrewind-source"] } },
  test: {
    projects: [
      { extends: true, test: { name: "unit", include: unit, ...together } },
      {
        extends: true,
        test: { name: "real", include: ["test/**/*.test.ts"], exclude: [...unit, ...alone], ...together, ...real },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, ...limits, fileParallelism: false, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
