// What a trace is: a task as an agent did it, turn by turn, and a verifier that says whether it is done. Fixed data; nothing here runs.

export type Call =
  | { readonly tool: "bash"; readonly args: { readonly command: string } }
  | { readonly tool: "read"; readonly args: { readonly path: string } }
  | { readonly tool: "write"; readonly args: { readonly path: string; readonly text: string } }
  | { readonly tool: "edit"; readonly args: { readonly path: string; readonly from: string; readonly to: string } };

export interface Turn {
  readonly say: string;
  readonly calls: readonly Call[];
  /** The turn only looks: the task is done without it as well. */
  readonly looks: boolean;
}

export interface Trace {
  readonly id: string;
  readonly family: string;
  /** "shell": a machine of the agent's own. "files": a folder. */
  readonly kind: "shell" | "files";
  /** The kind of published task that it follows, in our own words. */
  readonly follows?: string;
  /** Files of the workspace at the beginning, by their paths. */
  readonly files: Readonly<Record<string, string>>;
  /** A line for bash, run in the workspace on the host before anything else. */
  readonly prepare?: string;
  readonly turns: readonly Turn[];
  /** A script for bash that runs at the end in the workspace, in a shell of its own. It succeeds or says why not. */
  readonly verify: string;
}

export const bash = (command: string): Call => ({ tool: "bash", args: { command } });
export const read = (path: string): Call => ({ tool: "read", args: { path } });
export const write = (path: string, text: string): Call => ({ tool: "write", args: { path, text } });
export const edit = (path: string, from: string, to: string): Call => ({ tool: "edit", args: { path, from, to } });

const asCall = (call: Call | string): Call => (typeof call === "string" ? bash(call) : call);

/** A turn without which the task is not done. A text is a line for bash. */
export const act = (say: string, ...calls: readonly (Call | string)[]): Turn => ({
  say,
  calls: calls.map(asCall),
  looks: false,
});

export const look = (say: string, ...calls: readonly (Call | string)[]): Turn => ({
  say,
  calls: calls.map(asCall),
  looks: true,
});

/** Starts in the background, with nothing of the command's own output in its hands. */
export const background = (command: string): string => `${command} >/dev/null 2>&1 </dev/null &`;

/** Waits until something listens on the port of loopback, at most two seconds. */
export const listens = (port: number): string =>
  `for _ in $(seq 30); do (: </dev/tcp/127.0.0.1/${port}) 2>/dev/null && break; sleep 0.05; done; (: </dev/tcp/127.0.0.1/${port})`;

/** Waits until the condition holds, at most two seconds. */
export const until = (condition: string): string =>
  `for _ in $(seq 30); do ${condition} && break; sleep 0.05; done; ${condition}`;

/** For verifiers: fails with a sentence unless the command prints just this. */
export const expects = (command: string, value: string, what: string): string =>
  `got=$(${command}) || { echo "${what}: failed"; exit 1; }; [ "$got" = "${value}" ] || { echo "${what}: '$got'"; exit 1; }`;
