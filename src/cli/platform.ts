// Where AgentRewind does not run at all.
import { RewindError } from "../errors.ts";

export function refusedPlatform(platform: NodeJS.Platform = process.platform): RewindError | undefined {
  if (platform !== "win32") return undefined;
  return new RewindError("NOT_AVAILABLE", "AgentRewind does not run on Windows.", {
    hint: "Use it on Linux, for example in WSL 2 with the workspace on WSL's own disk.",
  });
}
