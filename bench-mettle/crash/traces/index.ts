// All traces.
import { services } from "./services.ts";
import type { Trace } from "./trace.ts";

export const traces: readonly Trace[] = [...services];
