// The command that must succeed in the restored files before a rewind counts (F-43).
import { RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import type { CheckpointRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { maskSecrets } from "./mask.ts";
import { type Check, noActivity } from "./move.ts";
import type { VerifyCommand } from "./types.ts";
import { checkpointId } from "./views.ts";

const defaultTimeoutMs = 600_000;
const tailLimit = 2_000;

/** @throws BAD_ARGUMENT */
export function cleanCheck(given: string | VerifyCommand | undefined): Check | null {
  if (given === undefined) return null;
  const { command, timeoutMs = defaultTimeoutMs } =
    typeof given === "string" || Array.isArray(given) ? { command: given } : (given as VerifyCommand);
  const isCommand =
    typeof command === "string"
      ? command.trim() !== ""
      : Array.isArray(command) &&
        command.length > 0 &&
        command.every((one) => typeof one === "string") &&
        command[0] !== "";
  if (!isCommand) {
    throw new RewindError("BAD_ARGUMENT", "verify: there is no command.", {
      hint: 'Give a line for the shell, "npm test", or { command, timeoutMs }.',
    });
  }
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0) {
    throw new RewindError("BAD_ARGUMENT", `verify: timeoutMs is ${timeoutMs}.`, {
      hint: "Give milliseconds, more than 0.",
    });
  }
  return { command, timeoutMs };
}

/** What the command writes is taken back. @throws VERIFY_FAILED; the caller puts back what was left */
export async function requireVerified(
  deps: SessionDeps,
  check: Check,
  target: CheckpointRow,
  left: CheckpointRow,
): Promise<void> {
  const { environment } = deps;
  const before = (await environment.capture().captured).manifest;
  fault("verify.restored");
  reportProgress("rewind", "running the check");
  const failure = await run(deps, check);
  await environment.settle?.();
  if (failure !== null) {
    throw new RewindError(
      "VERIFY_FAILED",
      `The check ${shown(check)} failed at ${checkpointId(target)} (${failure.how}), so the rewind was taken back: you are where you were, and everything is as it was.${failure.tail === "" ? "" : ` The end of its output:\n${failure.tail}`}`,
      {
        hint: "Choose another checkpoint, or go on from here.",
        details: { checkpoint: checkpointId(target), ...failure },
      },
    );
  }
  const after = await environment.capture().captured;
  if (after.manifest.files !== before.files || after.manifest.processes !== before.processes) {
    // Somebody else may have written meanwhile: what is overwritten is kept.
    deps.catalog.addCheckpoint(
      {
        thread: left.thread,
        seq: deps.catalog.takeSeq(left.thread),
        parent: left.id,
        turn: left.turn,
        kind: "safety",
        state: "captured",
        reason: null,
        label: null,
        anchor: null,
        context: left.context,
        messages: left.messages,
        serializer: left.serializer,
        manifest: after.manifest,
        changes: null,
        activity: noActivity,
        problems: after.problems,
        timings: { exposedMs: after.captureMs, overlappedMs: 0, bytes: after.bytes },
        lessons: JSON.parse(left.lessons) as number[],
      },
      deps.catalog.epoch(),
      false,
    );
    await environment.restore(before, { since: after.manifest });
  }
  fault("verify.passed");
}

interface Failure {
  readonly how: string;
  readonly tail: string;
}

async function run({ environment }: SessionDeps, { command, timeoutMs }: Check): Promise<Failure | null> {
  const { exitCode, signal, stdout, stderr, timedOut } = await environment.exec(command, { timeoutMs });
  if (exitCode === 0 && !timedOut) return null;
  const how = timedOut
    ? `not done after ${timeoutMs} ms`
    : signal === null
      ? `exit code ${exitCode}`
      : `ended by ${signal}`;
  const output = maskSecrets(
    [stdout, stderr]
      .map((one) => one.trim())
      .filter((one) => one !== "")
      .join("\n"),
  );
  return { how, tail: output.length <= tailLimit ? output : `…${output.slice(-tailLimit)}` };
}

const shown = ({ command }: Check): string => JSON.stringify(typeof command === "string" ? command : command.join(" "));
