// The arms of the sandbox's benchmark: AgentRewind, and what a user would do with CRIU's command and cp.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Checkpoint, openRewind } from "agentrewind";

export interface Shape {
  /** Processes besides the root of the tree and the shell; 0: none at all, not even a shell. */
  readonly processes: number;
  /** Of all of them together. */
  readonly megabytes: number;
  /** In the workspace. */
  readonly files: number;
}

export interface Arm {
  readonly name: string;
  /** One change of the files, if `changesFiles`, and one of every process. */
  change(changesFiles: boolean): Promise<void>;
  checkpoint(): Promise<void>;
  /** What is not measured of a rewind. */
  beforeRewind(): Promise<void>;
  /** To the last checkpoint but one; resolves when everything runs again. */
  rewind(): Promise<void>;
  /** The same without a capture of the state that is left; undefined where `rewind` makes none. */
  restore?(): Promise<void>;
  end(): Promise<void>;
}

/** How long processes may take to change. */
const changeMs = 50;
const program = fileURLToPath(new URL("tree.py", import.meta.url));

export function makeFiles(folder: string, count: number): void {
  for (let i = 0; i < count; i++) {
    const at = join(folder, `d${i % 100}`);
    if (i < 100) mkdirSync(at, { recursive: true });
    writeFileSync(join(at, `f${i}`), `${i} `.repeat(200));
  }
}

export async function agentrewindArm(base: string, shape: Shape): Promise<Arm> {
  const workspace = join(base, "workspace");
  mkdirSync(workspace);
  makeFiles(workspace, shape.files);
  cpSync(program, join(workspace, "tree.py"));
  const rewind = await openRewind({ workspace, store: join(base, "store"), environment: "sandbox" });
  const { environment } = rewind;
  const thread = rewind.thread("bench");
  let turn = 0;
  if (shape.processes > 0) {
    await environment.exec(`python3 tree.py ${shape.processes} ${shape.megabytes} /tmp/ready > /dev/null 2>&1 &`);
    const { exitCode } = await environment.exec("until [ -s /tmp/ready ]; do sleep 0.05; done", { timeoutMs: 60_000 });
    if (exitCode !== 0) throw new Error("the tree did not become ready");
  }
  const made: Checkpoint[] = [];
  const checkpoint = async (): Promise<void> => {
    const checkpoint = await thread.checkpoint({ context: { messages: [`${++turn}`] } });
    const { id, state, problems } = checkpoint;
    if (state === "not-restorable" || problems.length > 0) throw new Error(`${id}: ${JSON.stringify(problems)}`);
    made.push(checkpoint);
  };
  return {
    name: "agentrewind",
    async change(changesFiles) {
      if (changesFiles) await environment.writeFile("d1/f1", `${Math.random()}`);
      if (shape.processes > 0) await environment.exec("kill -USR1 $(cat /tmp/ready)");
      await sleep(changeMs);
    },
    checkpoint,
    async beforeRewind() {},
    async rewind() {
      const { notRestored } = await thread.rewind({ to: made.at(-2)?.id as string });
      if (notRestored.length > 0) throw new Error(JSON.stringify(notRestored));
    },
    async restore() {
      await environment.restore(made.at(-2)?.environment as Checkpoint["environment"]);
    },
    end: () => rewind.close(),
  };
}

export async function commandsArm(base: string, shape: Shape, criu: readonly string[]): Promise<Arm> {
  const workspace = join(base, "workspace");
  mkdirSync(workspace);
  makeFiles(workspace, shape.files);
  const ready = join(base, "ready");
  let root = 0;
  if (shape.processes > 0) {
    const args = [program, `${shape.processes}`, `${shape.megabytes}`, ready];
    const child = spawn("python3", args, { cwd: workspace, stdio: "ignore", detached: true });
    child.unref();
    while (!existsSync(ready) || readFileSync(ready, "utf8") === "") await sleep(50);
    root = Number(readFileSync(ready, "utf8"));
  }
  const states: string[] = [];
  const run = (command: readonly string[]): void => {
    execFileSync(command[0] as string, command.slice(1), { stdio: ["ignore", "ignore", "pipe"] });
  };
  const killTree = async (): Promise<void> => {
    const all = [root, ...childrenOf(root)];
    for (const pid of all) process.kill(pid, "SIGKILL");
    // Their numbers are free when they have been waited for.
    while (all.some((pid) => existsSync(`/proc/${pid}`))) await sleep(0);
  };
  return {
    name: "criu + cp",
    async change(changesFiles) {
      if (changesFiles) writeFileSync(join(workspace, "d1", "f1"), `${Math.random()}`);
      if (root > 0) process.kill(root, "SIGUSR1");
      await sleep(changeMs);
    },
    async checkpoint() {
      const state = mkdtempSync(join(base, "state-"));
      if (root > 0) run([...criu, "dump", "--leave-running", "-v0", "-D", state, "-t", `${root}`]);
      run(["cp", "-a", workspace, join(state, "files")]);
      states.push(state);
    },
    async beforeRewind() {
      if (root > 0) await killTree();
    },
    async rewind() {
      const state = states.at(-2) as string;
      run(["rm", "-rf", workspace]);
      run(["cp", "-a", join(state, "files"), workspace]);
      if (root > 0) run([...criu, "restore", "-d", "-v0", "-D", state]);
    },
    async end() {
      if (root > 0) await killTree();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
