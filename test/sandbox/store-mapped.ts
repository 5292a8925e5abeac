// A process that stores into a shared mapping and never syncs it.
import { spawn } from "node:child_process";
import { once } from "node:events";

const script = `
import mmap, sys
file = open(sys.argv[1], "r+b")
memory = mmap.mmap(file.fileno(), 8192)
print("ready", flush=True)
for line in sys.stdin:
    memory[0:1] = bytes([int(line)])
    print("stored", flush=True)
`;

export async function mapShared(path: string): Promise<{ store(byte: number): Promise<void>; end(): Promise<void> }> {
  const child = spawn("python3", ["-c", script, path], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return {
    async store(byte) {
      child.stdin.write(`${byte}\n`);
      await once(child.stdout, "data");
    },
    async end() {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}
