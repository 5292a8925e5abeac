// All traces.
import { builds } from "./builds.ts";
import { cRepositories } from "./c-repositories.ts";
import { configuration } from "./configuration.ts";
import { databases } from "./databases.ts";
import { git } from "./git.ts";
import { installs } from "./installs.ts";
import { jobs } from "./jobs.ts";
import { logs } from "./logs.ts";
import { nodeRepositories } from "./node-repositories.ts";
import { pipelines } from "./pipelines.ts";
import { pythonRepositories } from "./python-repositories.ts";
import { services } from "./services.ts";
import { shells } from "./shells.ts";
import type { Trace } from "./trace.ts";

export const traces: readonly Trace[] = [
  ...services,
  ...jobs,
  ...builds,
  ...installs,
  ...databases,
  ...git,
  ...shells,
  ...configuration,
  ...pipelines,
  ...logs,
  ...pythonRepositories,
  ...nodeRepositories,
  ...cRepositories,
];
