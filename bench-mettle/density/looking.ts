// Turns that only look, as agents spend most of theirs.
import { pick, type Random } from "../crash/random.ts";
import { bash, type Call, read } from "../crash/traces/trace.ts";
import type { AgentClass, Look } from "./classes.ts";
import { servicePort } from "./service.ts";

/** Below the workspace: stands for the tests of a larger program. */
export const checksPath = "checks/run.py";

/** Takes about half a second of a processor, writes nothing and prints always the same. */
export const checks = `import hashlib
digest = b""
for test in range(12):
    for _ in range(25_000):
        digest = hashlib.sha256(digest).digest()
    print("test", test, "ok")
print("12 passed", digest.hex()[:8])
`;

/** Where the agent stands: a folder below the workspace, with the files that it began with. */
export interface Stand {
  readonly workspace: string;
  readonly folder: string;
  readonly files: readonly string[];
}

export function lookOf(random: Random, { at }: AgentClass, { workspace, folder, files }: Stand): Call[] {
  switch (kindOf(random, at)) {
    case "read": {
      const [first = "CHANGES", ...more] = files;
      const whole = read(`${folder}/${pick(random, [first, ...more])}`);
      return [pick(random, [whole, whole, bash("ls -la"), bash("head -n 30 *"), bash("wc -l *; pwd")])];
    }
    case "search":
      return [
        pick(random, [
          bash("grep -rnE 'return|def|const|int' . | head -n 40"),
          bash("find . -type f -not -path './.git/*' | sort | head -n 60"),
          bash("grep -rlw root /etc 2>/dev/null | wc -l"),
        ]),
      ];
    case "git":
      return [
        pick(random, [
          bash("git status --short"),
          bash("git log --oneline | head -n 5"),
          bash("git diff | head -n 60"),
        ]),
      ];
    case "tests":
      return [bash(`python3 ${workspace}/${checksPath}`)];
    case "ask":
      return [bash(`curl -s localhost:${servicePort}/`)];
    case "say":
      return [];
  }
}

function kindOf(random: Random, at: AgentClass["at"]): Look {
  const all = Object.entries(at) as [Look, number][];
  let left = random() * all.reduce((sum, [, share]) => sum + share, 0);
  for (const [kind, share] of all) {
    left -= share;
    if (left < 0) return kind;
  }
  return "read";
}
