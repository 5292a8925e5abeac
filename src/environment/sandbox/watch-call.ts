// Waits for the end of a command: its time, its output as it comes, and what is told of it.
import { constants as os } from "node:os";
import { RewindError } from "../../errors.ts";
import type { ExecOptions, ExecResult } from "../environment.ts";
import type { Call, CallEnd } from "./calls.ts";

const defaultMaxBytes = 10 << 20;
/** Output beyond what is kept stays in a file of the sandbox; a command that writes more than this is ended. */
export const spillBytes = 1 << 30;

export interface Watched {
  readonly result: CallEnd | undefined;
  /** It was ended before its own end. */
  readonly cut: boolean;
  readonly timedOut: boolean;
}

export interface Watch {
  readonly call: Call;
  readonly options: ExecOptions;
  readonly signal: AbortSignal;
  /** Raised when this life of the sandbox has ended. */
  readonly gone: AbortSignal;
  over(): CallEnd | undefined;
  /** Ends the command. */
  stop(): Promise<void>;
}

/** @throws COMMAND_FAILED when the sandbox ends first */
export async function watchCall({ call, options, signal, gone, over, stop }: Watch): Promise<Watched> {
  const limit = new AbortController();
  const timer = options.timeoutMs === undefined ? undefined : setTimeout(() => limit.abort("time"), options.timeoutMs);
  const raise = (): void => limit.abort("signal");
  signal.addEventListener("abort", raise, { once: true });
  if (signal.aborted) raise();
  const told = { out: 0, err: 0 };
  const look = (): CallEnd | undefined => {
    if (call.size("out") + call.size("err") > spillBytes) limit.abort("output");
    if (options.onOutput !== undefined) passOutput(call, told, options.onOutput);
    return over();
  };
  try {
    let result = await call.until(look, limit.signal);
    const cut = result === undefined;
    if (cut) {
      await stop();
      result = await call.until(look, AbortSignal.any([AbortSignal.timeout(2_000), gone]));
    }
    if (options.onOutput !== undefined) passOutput(call, told, options.onOutput);
    if (result === undefined && gone.aborted && limit.signal.reason !== "time") throw endedError();
    return { result, cut, timedOut: cut && limit.signal.reason === "time" };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", raise);
  }
}

function passOutput(
  call: Call,
  told: { out: number; err: number },
  onOutput: NonNullable<ExecOptions["onOutput"]>,
): void {
  for (const stream of ["out", "err"] as const) {
    for (;;) {
      const bytes = call.output(stream, told[stream], 1 << 20);
      if (bytes.length === 0) break;
      told[stream] += bytes.length;
      onOutput(stream === "out" ? "stdout" : "stderr", bytes);
    }
  }
}

export function resultOf(call: Call, { result, cut, timedOut }: Watched, options: ExecOptions): ExecResult {
  const { maxBytes = defaultMaxBytes } = options;
  const truncated = call.size("out") > maxBytes || call.size("err") > maxBytes;
  const [stdout, stderr] = (["out", "err"] as const).map((one) => call.output(one, 0, maxBytes).toString("utf8"));
  const ended = cut ? ({ kind: "signal", signal: os.signals.SIGKILL } as const) : result;
  return {
    exitCode: ended?.kind === "exit" ? ended.code : null,
    signal: ended?.kind === "signal" ? signalName(ended.signal) : null,
    stdout: stdout as string,
    stderr: stderr as string,
    timedOut,
    truncated,
    ...(truncated ? { full: { stdout: `${call.inside}/out`, stderr: `${call.inside}/err` } } : {}),
  };
}

export const signalName = (number: number): string =>
  Object.entries(os.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`;

export const endedError = (): RewindError =>
  new RewindError("COMMAND_FAILED", "The sandbox was rewound or closed while the command ran.", {
    hint: "Run it again if it is still wanted.",
  });
