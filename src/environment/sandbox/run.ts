// Runs a program of the machine to its end, with a time limit that ends everything it started.
import { spawn } from "node:child_process";

export interface ProgramEnd {
  /** Null where it did not start, was killed, or ran out of time. */
  readonly exitCode: number | null;
  readonly stdout: Buffer;
  /** Also says why it did not start, or that its time was over. */
  readonly stderr: string;
}

const kept = 1 << 20;

/** Never rejects. `folder` is an open directory, which the program has as descriptor 8. */
export function runProgram(
  [program = "", ...args]: readonly string[],
  { folder, timeoutMs = 10_000 }: { readonly folder?: number; readonly timeoutMs?: number } = {},
): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    const output: Buffer[] = [];
    const errors: Buffer[] = [];
    let said = "";
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe", ...(folder === undefined ? [] : [...Array(5).fill("ignore"), folder])],
      detached: true,
      env: { PATH: process.env.PATH, LC_ALL: "C" },
    });
    const keep = (list: Buffer[]) => {
      let bytes = 0;
      return (chunk: Buffer) => {
        if (bytes < kept) list.push(chunk);
        bytes += chunk.length;
      };
    };
    child.stdout?.on("data", keep(output));
    child.stderr?.on("data", keep(errors));
    const timer = setTimeout(() => {
      said = `not done after ${timeoutMs / 1000} s`;
      // The group of its own that `detached` gave it.
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, timeoutMs);
    child.on("error", (error) => {
      said = error.message;
    });
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({
        exitCode: said === "" ? code : null,
        stdout: Buffer.concat(output),
        stderr: Buffer.concat(errors).toString() + said,
      });
    });
  });
}
