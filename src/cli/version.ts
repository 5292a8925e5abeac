// The version in this package's package.json, above src/ as well as above dist/src/.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export function packageVersion(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const file = join(folder, "package.json");
    if (existsSync(file)) {
      const { name, version } = JSON.parse(readFileSync(file, "utf8"));
      if (name === "agentrewind") return version;
    }
    if (folder === dirname(folder)) return "unknown";
  }
}
