// `exec` in a sandbox: lines go to a persistent shell, programs and lines with a folder, variables or a busy shell to a process of their own.
import { setTimeout as sleep } from "node:timers/promises";
import { getSystemErrorName } from "node:util";
import { RewindError, systemCode } from "../../errors.ts";
import type { ExecOptions, ExecResult } from "../environment.ts";
import { kill, killGroup, type ProcessInfo, processInfos, targetOf } from "../processes/proc.ts";
import { Call, type CallEnd, type CallRequest } from "./calls.ts";
import { openCalls } from "./open-calls.ts";
import type { RunFolder } from "./run-folder.ts";
import { fileName, requireSendable, variables } from "./sendable.ts";
import { jobControl, shellCommand, shellLines, shellSettings } from "./shell-settings.ts";
import { mostState, shellDigest } from "./shell-state.ts";
import { endedError, resultOf, signalName, spillBytes, type Watch, type Watched, watchCall } from "./watch-call.ts";

/** What commands need of the sandbox that they run in. */
export interface CommandPlace {
  /** The folder that is /run/agentrewind inside. */
  readonly run: RunFolder;
  /** Host pids of the tree. */
  processes(): number[];
  /** Absolute, inside. */
  readonly workspace: string;
  /** Raised when this life of the sandbox has ended. */
  readonly over: AbortSignal;
}

const idleLooks = 1_000;
/** Commands whose output stays in the sandbox. */
const keptCalls = 16;
/** How long the root may take until it listens. */
const readyMs = 5_000;
/** How long a shell may take to end a command that was interrupted, and how often that is tried before the shell is ended. */
const interruptMs = 200;
const interrupts = 3;

export class SandboxCommands {
  readonly #place: CommandPlace;
  readonly #busy = new Set<string>();
  /** What the persistent shells know, by their numbers inside; those of which it cannot be told, or that run a command, are not there. */
  readonly #known = new Map<number, string>();
  /** Ids of the commands that run. */
  readonly #calls = new Set<string>();
  readonly #running = new Map<AbortController, Promise<unknown>>();
  #begun = 0;

  constructor(place: CommandPlace) {
    this.#place = place;
  }

  /** Makes what the tree's root reads. Before it starts. */
  static prepare(run: RunFolder): void {
    for (const folder of ["calls", "shells"]) run.makeFolder(folder);
    if (run.read("shell") !== shellSettings) run.write("shell", shellSettings);
    run.makeFifo("control");
  }

  async exec(command: string | readonly string[], options: ExecOptions, cwd: string | undefined): Promise<ExecResult> {
    this.#begun++;
    const control = new AbortController();
    const stop = (): void => control.abort();
    for (const signal of [options.signal, this.#place.over]) {
      signal?.addEventListener("abort", stop, { once: true });
      if (signal?.aborted) stop();
    }
    const result = this.#exec(command, options, cwd, control.signal);
    this.#running.set(control, result);
    try {
      return await result;
    } finally {
      this.#running.delete(control);
      for (const signal of [options.signal, this.#place.over]) signal?.removeEventListener("abort", stop);
    }
  }

  /** Ends what runs, and resolves when it has ended. Persistent shells and what was left in the background stay. */
  async settle(): Promise<void> {
    const results = [...this.#running.values()];
    for (const control of this.#running.keys()) control.abort();
    await Promise.allSettled(results);
  }

  /** Numbers, inside, of the persistent shells. */
  shells(): Set<number> {
    const pids = this.#shellCalls().map((id) => new Call(this.#place.run, id).pid());
    return new Set(pids.filter((pid) => pid !== undefined));
  }

  /** How many commands were begun. */
  get begun(): number {
    return this.#begun;
  }

  /** What the shells know that wait for a command (`shellDigest`), by their numbers inside; undefined while any command runs. */
  knownShells(): ReadonlyMap<number, string> | undefined {
    return this.#running.size > 0 ? undefined : new Map(this.#known);
  }

  /** Of shells that were brought back. */
  takeKnown(shells: ReadonlyMap<number, string>): void {
    for (const [pid, digest] of shells) this.#known.set(pid, digest);
  }

  /** Starts a program that nobody waits for. Null where it runs after `watchedMs`; else how it has ended. */
  async launch(request: CallRequest, watchedMs: number): Promise<string | null> {
    this.#begun++;
    const call = new Call(this.#place.run);
    call.make();
    call.request(request);
    await this.#tellRoot(call.id);
    const end = await call.until(() => call.end(), AbortSignal.timeout(watchedMs));
    if (end === undefined) return null;
    call.remove();
    if (end.kind === "exit") return `exit status ${end.code}`;
    return end.kind === "signal" ? signalName(end.signal) : getSystemErrorName(-end.errno);
  }

  async #exec(
    command: string | readonly string[],
    options: ExecOptions,
    cwd: string | undefined,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    requireSendable(command, options.env);
    const shell = fileName(options.shell ?? "main");
    const fits = typeof command === "string" && cwd === undefined && options.env === undefined;
    if (!fits || this.#busy.has(shell)) return this.#alone(command, options, cwd, signal);
    this.#busy.add(shell);
    try {
      return await this.#inShell(shell, command, options, signal);
    } finally {
      this.#busy.delete(shell);
    }
  }

  async #alone(
    command: string | readonly string[],
    options: ExecOptions,
    cwd: string | undefined,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    const argv = typeof command === "string" ? ["bash", "--norc", "-c", command] : command;
    if (argv[0] === undefined || argv[0] === "") {
      throw new RewindError("BAD_ARGUMENT", "The command is empty.", {
        hint: "Give a command line or a program with its arguments.",
      });
    }
    const call = this.#begin(options, "in");
    call.request({ argv, env: variables(options.env), cwd: cwd ?? this.#place.workspace });
    await this.#tellRoot(call.id);
    const end = await this.#watch(call, {
      options,
      signal,
      over: () => call.end(),
      stop: async () => {
        const patience = AbortSignal.any([AbortSignal.timeout(readyMs), this.#place.over]);
        // The root may be about to start it.
        const pid = await call.until(() => (call.end() === undefined ? call.pid() : 0), patience);
        const found = pid === undefined ? undefined : this.#find(pid);
        if (found !== undefined) killGroup(found.group);
      },
    });
    if (end.result?.kind === "error") {
      const name = getSystemErrorName(-end.result.errno);
      call.remove();
      throw new RewindError("COMMAND_FAILED", `The command could not be started: ${argv[0]}: ${name}.`, {
        hint:
          name === "EAGAIN"
            ? "There are as many processes as may be: end some, or raise the limit of the sandbox."
            : "Check that the program and the working directory exist.",
        details: { error: name },
      });
    }
    return this.#result(call, end, options);
  }

  async #inShell(name: string, command: string, options: ExecOptions, signal: AbortSignal): Promise<ExecResult> {
    const shell = await this.#openShell(name);
    this.#known.delete(shell.pid);
    const before = new Set(this.#children(shell.pid).map(({ pid }) => pid));
    const call = this.#begin(options, "input");
    call.put("command", command);
    call.put("run", shellCommand(call.inside, options.input !== undefined));
    this.#place.run.tell(`${shell.call.folder}/in`, shellLines(call.inside));
    let lost = false;
    const over = (): CallEnd | undefined => {
      const end = call.endInShell();
      if (end !== undefined) return end;
      // The command ended its shell: how is what the root wrote down.
      const ended = shell.call.end();
      // What the shell itself said of it may have come between both looks.
      const said = ended === undefined ? undefined : call.endInShell();
      if (said !== undefined) return said;
      if (ended !== undefined) lost = true;
      return ended;
    };
    const killStarted = (host: ProcessInfo): void => {
      for (const child of this.#children(shell.pid)) {
        if (before.has(child.pid)) continue;
        if (child.group === host.group) kill(child.pid, "SIGKILL");
        else killGroup(child.group);
      }
    };
    const stop = async (): Promise<void> => {
      // A shell that has not read it yet will find nothing to do.
      call.take("run");
      for (let tries = 0; over() === undefined; tries++) {
        const host = this.#find(shell.pid);
        if (host === undefined) return;
        // Before its children: a shell whose child ends without an interrupt goes on with the next part of the line.
        kill(host.pid, "SIGINT");
        killStarted(host);
        const patience = AbortSignal.timeout(interruptMs);
        if (tries < interrupts) await call.until(over, patience);
        else return killGroup(host.group);
      }
      const host = this.#find(shell.pid);
      if (host !== undefined) killStarted(host);
    };
    const end = await this.#watch(call, { options, signal, over, stop });
    if (lost) this.#place.run.remove(`shells/${name}`);
    else {
      await this.#untilIdle(shell.pid);
      this.#learn(shell.pid, call);
    }
    return this.#result(call, end, options);
  }

  #learn(shell: number, call: Call): void {
    const digest = shellDigest(call.part("state", mostState + 1));
    call.take("state");
    if (digest !== undefined) this.#known.set(shell, digest);
  }

  /** The shell says that a command has ended a moment before it waits for the next one: a state captured in between would be another one. */
  async #untilIdle(pid: number): Promise<void> {
    for (let looks = 0; looks < idleLooks; looks++) {
      const state = this.#find(pid)?.state;
      if (state === undefined || state === "S") return;
      await sleep(1);
    }
  }

  #begin(options: ExecOptions, inputName: string): Call {
    const call = new Call(this.#place.run);
    call.make();
    this.#calls.add(call.id);
    if (options.input !== undefined) call.put(inputName, options.input);
    return call;
  }

  /** The root may be about to begin: it is told again while nobody listens. */
  async #tellRoot(id: string): Promise<void> {
    for (const end = Date.now() + readyMs; ; ) {
      try {
        this.#place.run.tell("control", id);
        return;
      } catch (error) {
        if (systemCode(error) === "ENXIO" && Date.now() < end && !this.#place.over.aborted) {
          await sleep(1);
          continue;
        }
        throw new RewindError("COMMAND_FAILED", `The sandbox does not take commands (${systemCode(error)}).`, {
          hint: "Open the workspace again: the last pair comes back.",
          cause: error,
        });
      }
    }
  }

  /** Starts it where it is not there, or has ended. */
  async #openShell(name: string): Promise<{ call: Call; pid: number }> {
    const run = this.#place.run;
    const note = `shells/${name}`;
    const known = callId(run.read(note));
    if (known !== undefined) {
      const call = new Call(run, known);
      const pid = call.pid();
      const host = pid === undefined || call.end() !== undefined ? undefined : this.#find(pid);
      // Its number may be another's by now: the shell is who reads its pipe.
      if (pid !== undefined && host !== undefined && targetOf(host.pid, "0") === `${call.inside}/in`)
        return { call, pid };
      call.remove();
    }
    const call = new Call(run);
    call.make();
    run.makeFifo(`${call.folder}/in`);
    call.request({
      argv: ["bash", "--noprofile", "--rcfile", "/run/agentrewind/shell", "--noediting", "-i"],
      env: variables(undefined),
      cwd: this.#place.workspace,
    });
    await this.#tellRoot(call.id);
    const pid = await call.until(() => {
      const end = call.end();
      if (end !== undefined) {
        const reason = end.kind === "error" ? getSystemErrorName(-end.errno) : `it ended: ${end.kind}`;
        throw new RewindError("COMMAND_FAILED", `The shell could not be started: bash: ${reason}.`, {
          hint: "Install bash in the sandbox, or give the program with its arguments.",
        });
      }
      return call.pid();
    }, this.#place.over);
    if (pid === undefined) throw endedError();
    run.tell(`${call.folder}/in`, jobControl);
    run.makeFolder("shells");
    run.write(note, call.id);
    return { call, pid };
  }

  async #watch(call: Call, how: Omit<Watch, "call" | "gone">): Promise<Watched> {
    try {
      return await watchCall({ ...how, call, gone: this.#place.over });
    } finally {
      this.#calls.delete(call.id);
    }
  }

  #result(call: Call, end: Watched, options: ExecOptions): ExecResult {
    const answer = resultOf(call, end, options);
    if (!answer.truncated && !this.#isUsed()) call.remove();
    this.#sweep();
    return answer;
  }

  /** What still runs in the background may write on, and its image names the files; of the others the newest stay, to be read. */
  #sweep(): void {
    const run = this.#place.run;
    const names = run.names("calls").sort();
    if (names.length <= keptCalls) return;
    const used = new Set([...this.#shellCalls(), ...this.#calls, ...openCalls(this.#place.processes())]);
    let bytes = 0;
    let kept = 0;
    for (const name of names.reverse()) {
      if (used.has(name)) continue;
      const call = new Call(run, name);
      bytes += call.size("out") + call.size("err");
      if (++kept > keptCalls || bytes > spillBytes) call.remove();
    }
  }

  /** Ids of the commands that are persistent shells, or were. */
  #shellCalls(): string[] {
    const { run } = this.#place;
    return run.names("shells").flatMap((name) => callId(run.read(`shells/${name}`)) ?? []);
  }

  /** Whether anything but the root and idle shells runs. */
  #isUsed(): boolean {
    const infos = processInfos(this.#place.processes());
    const root = infos.find(({ inside }) => inside === 2);
    const shells = new Set(infos.filter(({ parent }) => parent === root?.pid).map(({ pid }) => pid));
    return infos.some((one) => one !== root && !shells.has(one.pid) && one.state !== "Z");
  }

  #find(inside: number): ProcessInfo | undefined {
    return processInfos(this.#place.processes()).find((one) => one.inside === inside && one.state !== "Z");
  }

  #children(inside: number): ProcessInfo[] {
    const infos = processInfos(this.#place.processes());
    const parent = infos.find((one) => one.inside === inside);
    return infos.filter((one) => one.parent === parent?.pid);
  }
}

/** What a note of a shell says; undefined for anything that is no id. */
const callId = (text: string | undefined): string | undefined => (/^[\w-]+$/.test(text ?? "") ? text : undefined);
