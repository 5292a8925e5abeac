// Follows the links of a path that a caller gave, without leaving the workspace.
import { readlinkSync, realpathSync } from "node:fs";
import { normalize } from "node:path";
import { RewindError, systemCode } from "../../errors.ts";
import { display, fromBytes, parentOf, type RawPath, toBytes } from "./names.ts";

/** Where the links of `path` lead, as a path without links. @throws PATH_OUTSIDE when that is not in the workspace */
export function linkFree(root: string, path: RawPath, hops = 0): RawPath {
  const top = realpathSync(root, "buffer");
  let known = path;
  let rest: RawPath = "";
  for (;;) {
    try {
      const real = realpathSync(Buffer.concat([top, Buffer.from("/"), toBytes(known)]), "buffer");
      const inside =
        real.equals(top) || real.subarray(0, top.length + 1).equals(Buffer.concat([top, Buffer.from("/")]));
      if (!inside) throw outsideError(path);
      const found = fromBytes(real.subarray(top.length + 1));
      return found === "" ? rest : rest === "" ? found : `${found}/${rest}`;
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || known === "") throw error;
      const target = linkTarget(Buffer.concat([top, Buffer.from("/"), toBytes(known)]));
      if (target !== undefined && hops < hopLimit) {
        // A link to what is not there yet: its own text says where that would be.
        const start = fromBytes(top);
        const led = normalize(
          target.startsWith("/") ? target : `${start}/${linkFree(root, parentOf(known), hops + 1)}/${target}`,
        );
        if (!led.startsWith(`${start}/`)) throw outsideError(path);
        return linkFree(root, led.slice(start.length + 1) + (rest === "" ? "" : `/${rest}`), hops + 1);
      }
      rest = rest === "" ? baseOf(known) : `${baseOf(known)}/${rest}`;
      known = parentOf(known);
    }
  }
}

/** As many as the kernel follows. */
const hopLimit = 40;

function linkTarget(path: Buffer): RawPath | undefined {
  try {
    return fromBytes(readlinkSync(path, "buffer"));
  } catch {
    return undefined;
  }
}

function outsideError(path: RawPath): RewindError {
  return new RewindError("PATH_OUTSIDE", `${display(path)} leads out of the workspace.`, {
    hint: "Name a file inside the workspace.",
  });
}

const baseOf = (path: RawPath): RawPath => path.slice(path.lastIndexOf("/") + 1);
