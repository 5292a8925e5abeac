// Where a run happens: a workspace at one path, made anew where a policy begins in a fresh environment, and a store for each.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Trace } from "./traces/trace.ts";

const command = fileURLToPath(new URL("../../dist/src/cli/main.js", import.meta.url));

export interface Place {
  readonly workspace: string;
  /** Of the present environment. */
  store(): string;
  /** The plain loop's log. */
  readonly conversation: string;
  /** The environment as it is at the beginning of the trace; what was there is gone. */
  makeFresh(): void;
  remove(): void;
}

/** For everything that a trace starts: the system's programs come first, no setting of the user's counts. */
export const plainEnvironment = (): NodeJS.ProcessEnv => ({
  PATH: ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/bin", dirname(process.execPath)].join(":"),
  HOME: "/root",
  LC_ALL: "C.UTF-8",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  ...Object.fromEntries(["AUTHOR", "COMMITTER"].flatMap(gitName)),
});

const gitName = (role: string): [string, string][] => [
  [`GIT_${role}_NAME`, "agent"],
  [`GIT_${role}_EMAIL`, "agent@localhost"],
];

export function makePlace(trace: Trace): Place {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-crash-"));
  const workspace = join(base, "work");
  let stores = 0;
  const store = (): string => join(base, `store-${stores}`);
  return {
    workspace,
    store,
    conversation: join(base, "conversation.jsonl"),
    makeFresh() {
      rmSync(workspace, { recursive: true, force: true });
      mkdirSync(workspace);
      stores++;
      mkdirSync(store());
      for (const [path, text] of Object.entries(trace.files)) {
        mkdirSync(dirname(join(workspace, path)), { recursive: true });
        writeFileSync(join(workspace, path), text);
      }
      if (trace.prepare === undefined) return;
      execFileSync("bash", ["-ec", trace.prepare], { cwd: workspace, stdio: "ignore", env: plainEnvironment() });
    },
    remove() {
      for (const name of readdirSync(base).filter((one) => one.startsWith("store-")))
        cleanStore(join(base, name), workspace);
      rmSync(base, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/**
 * What a killed owner of a sandbox left that nobody opens again: its mounts and groups.
 * @param folder in which the command runs: not below the store
 */
export function cleanStore(store: string, folder: string): void {
  if (!existsSync(join(store, "layers"))) return;
  execFileSync(process.execPath, [command, "--store", store, "doctor", "--clean"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
}
