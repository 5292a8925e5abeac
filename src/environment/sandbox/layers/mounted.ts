// What is mounted at a folder, as /proc tells.
import { readFileSync } from "node:fs";

export interface Mounted {
  readonly kind: string;
  /** The device, or what the file system calls its source. */
  readonly source: string;
  /** Of this mount ("noatime"), then of the file system ("ro" when it writes nothing any more). */
  readonly options: ReadonlySet<string>;
  readonly fileSystemOptions: ReadonlySet<string>;
}

/** The topmost mount at exactly this path (absolute, without links), or undefined. */
export function mountAt(path: string): Mounted | undefined {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const wanted = toOctal(path);
  const line = lines.findLast((one) => one.split(" ")[4] === wanted);
  if (line === undefined) return undefined;
  const [mount = "", fileSystem = ""] = line.split(" - ");
  const [kind = "", source = "", options = ""] = fileSystem.split(" ");
  const mountOptions = mount.split(" ")[5] ?? "";
  return {
    kind,
    source: fromOctal(source),
    options: new Set(mountOptions.split(",")),
    fileSystemOptions: new Set(options.split(",")),
  };
}

/** The kernel writes space, tab, newline and backslash in octal. */
const toOctal = (path: string): string =>
  path.replace(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);

const fromOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
