import type { Rewind } from "agentrewind";

type Environment = Rewind["environment"];
export function toolsOver(
  environment: Environment,
  commandMs?: number,
): Record<"bash" | "read" | "write" | "edit", (args: Readonly<Record<string, string>>) => Promise<string>>;
export function verified(
  environment: Environment,
  script: string,
  commandMs?: number,
): Promise<{ pass: boolean; why: string }>;
