// Which of the host's folders a sandbox sees, and through which overlays.
import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { RewindError } from "../../errors.ts";
import { innermost, isBelow, restBelow } from "./inside.ts";
import { mountTable } from "./mount-table.ts";
import type { SandboxPlace } from "./options.ts";
import type { Arrangement } from "./park.ts";
import type { Overlay } from "./view.ts";

/** Seen by nobody inside: with these a process could act as the user elsewhere. */
const credentials = [
  ".ssh",
  ".gnupg",
  ".aws",
  ".azure",
  ".config/gcloud",
  ".kube",
  ".docker/config.json",
  ".netrc",
  ".npmrc",
  ".git-credentials",
];

/** What a sandbox has of its own at these paths. */
const replaced = ["/tmp", "/dev", "/proc", "/sys", "/run/agentrewind"];

/** The overlays, that of "/" first; parents before what is mounted below them. @throws BAD_ARGUMENT */
export function planOverlays(
  { workspace, rootfs, mounts = [] }: SandboxPlace,
  points = mountTable().map(({ point }) => point),
): Omit<Overlay, "kept">[] {
  const paths = new Set<string>();
  for (const wanted of [workspace, ...mounts]) {
    const path = realPath(wanted);
    const hidden = replaced.find((one) => isBelow(path, one));
    if (hidden !== undefined && hidden !== "/tmp" && !isBelow(path, "/dev/shm")) {
      throw new RewindError("BAD_ARGUMENT", `A sandbox has a ${hidden} of its own: ${path} cannot be seen inside.`, {
        hint: "Choose a folder elsewhere.",
      });
    }
    const mount = innermost(points, (point) => point, path) ?? "/";
    // What the sandbox has of its own hides the host's: there the folder itself is laid over it.
    if (hidden !== undefined) paths.add(path);
    else if (mount !== "/") paths.add(mount);
    // Another root file system holds nothing of the host's.
    else if (rootfs !== undefined) paths.add(path);
  }
  const others = [...paths].sort((a, b) => a.length - b.length);
  return [
    { path: "/", lower: rootfs === undefined ? "/" : realPath(rootfs), name: "root" },
    ...others.map((path, index) => ({ path, lower: path, name: `mount-${index + 1}` })),
  ];
}

/** The overlay through which a path is seen, absolute inside, and the path below it. */
export function overlayOf<T extends Pick<Overlay, "path">>(
  overlays: readonly T[],
  path: string,
): { overlay: T; below: string } {
  const overlay = innermost(overlays, (one) => one.path, path) as T;
  return { overlay, below: restBelow(path, overlay.path) };
}

/** What a sandbox has of its own there, or has anew. */
export const isOwn = (path: string, { path: overlay }: Pick<Overlay, "path">): boolean =>
  overlay === "/" && replaced.some((one) => isBelow(path, one));

/** Of a sandbox that came from elsewhere: the same paths inside, over what this machine has there. @throws BAD_ARGUMENT */
export function arrangedOverlays(
  { workspace, rootfs }: Pick<SandboxPlace, "workspace" | "rootfs">,
  arrangement: Arrangement,
): Omit<Overlay, "kept">[] {
  return arrangement.overlays.map(({ path, name }) => {
    if (path === arrangement.workspace) return { path, name, lower: workspace };
    if (path === "/") return { path, name, lower: rootfs === undefined ? "/" : realPath(rootfs) };
    return { path, name, lower: realPath(path) };
  });
}

export function planHidden({ store, hide = [] }: SandboxPlace): string[] {
  const home = homedir();
  // What a link leads to is what must not be seen; inside, a link would be followed from another root.
  return [store, `${store}-branches`, ...credentials.map((one) => join(home, one)), ...hide].map(realOrItself);
}

function realOrItself(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    throw new RewindError("BAD_ARGUMENT", `There is no ${path}.`, { hint: "Check the name." });
  }
}
