// deepagents' paths: "/" is the workspace's root. The environment's are relative to it.
import { type Environment, RewindError } from "agentrewind";

/** @throws PATH_OUTSIDE */
export function toWorkspace(environment: Environment, path: string): string {
  const root = (environment.root ?? environment.path(""))?.replace(/\/+$/, "") ?? "";
  // The shell knows the workspace by its path on the host; what a command printed can be used as it stands.
  const inside = root !== "" && (path === root || path.startsWith(`${root}/`)) ? path.slice(root.length) : path;
  const parts = inside.split("/").filter((part) => part !== "" && part !== ".");
  if (!parts.includes("..") && !path.includes("\0")) return parts.join("/");
  throw new RewindError("PATH_OUTSIDE", `${path} is not inside the workspace.`, {
    hint: 'Give a path from the workspace\'s root, "/", without `..`.',
  });
}

export const toBackend = (path: string): string => `/${path}`;
export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const join = (folder: string, name: string): string => (folder === "" ? name : `${folder}/${name}`);
