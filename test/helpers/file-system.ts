// A file system of its own, mounted in a temporary folder.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { lacking } from "../capabilities.ts";
import { mkfsBtrfs } from "./mkfs.ts";

export interface Mounted {
  readonly folder: string;
  end(): void;
}

export function mountNew(kind: "tmpfs" | "btrfs" | "xfs"): Mounted {
  const base = fs.mkdtempSync(join(tmpdir(), `agentrewind-${kind}-`));
  const folder = join(base, "mounted");
  fs.mkdirSync(folder);
  if (kind === "tmpfs") execFileSync("mount", ["-t", "tmpfs", "-o", "size=256m", "none", folder]);
  else {
    const image = join(base, "image");
    fs.writeFileSync(image, "");
    fs.truncateSync(image, 320 << 20);
    const [command, ...args] = kind === "btrfs" ? (mkfsBtrfs() as readonly string[]) : ["mkfs.xfs"];
    execFileSync(command as string, [...args, "-q", image], { stdio: "ignore" });
    execFileSync("mount", ["-o", "loop", image, folder]);
  }
  return {
    folder,
    end() {
      execFileSync("umount", ["-l", folder]);
      fs.rmSync(base, { recursive: true });
    },
  };
}

/** For the tests of a `describe`: a folder on that file system, and whether it cannot be had here. */
export function useFileSystem(where: "the disk" | "tmpfs" | "btrfs" | "xfs"): {
  readonly parent: string;
  readonly lacks: boolean;
} {
  if (where === "the disk") return { parent: tmpdir(), lacks: false };
  const lacks = lacking(where);
  let mounted: Mounted | undefined;
  if (!lacks) {
    beforeAll(() => {
      mounted = mountNew(where);
    });
    afterAll(() => mounted?.end());
  }
  return {
    get parent() {
      return mounted?.folder ?? tmpdir();
    },
    lacks,
  };
}
