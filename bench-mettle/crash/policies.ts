// What is kept of a run that was killed, and how a workspace is opened for that.
import type { OpenOptions } from "agentrewind";
import type { Trace } from "./traces/trace.ts";

export interface Policy {
  readonly name: string;
  /** In one sentence, for the table. */
  readonly about: string;
  /** "nothing": it begins anew. "conversation": a log of its own, written by a plain loop. "pairs": what AgentRewind keeps. */
  readonly keeps: "nothing" | "conversation" | "pairs";
  /** More options of `openRewind`, by the kind of trace. */
  readonly open: Readonly<Record<Trace["kind"], Partial<OpenOptions>>>;
}

const plain: Policy["open"] = { shell: {}, files: {} };

export const policies: readonly Policy[] = [
  { name: "restart", about: "everything from the beginning, in a fresh environment", keeps: "nothing", open: plain },
  { name: "chat", about: "the conversation is kept, the environment is fresh", keeps: "conversation", open: plain },
  {
    name: "chat+files",
    about: "the conversation and the files are kept, processes are gone",
    keeps: "pairs",
    open: { shell: { sandbox: { processes: "stop" } }, files: { directory: { processes: "stop" } } },
  },
  {
    name: "full",
    about: "both halves are captured at every turn",
    keeps: "pairs",
    open: { shell: { inspector: "scan" }, files: { inspector: "scan" } },
  },
  { name: "ours", about: "AgentRewind as it comes", keeps: "pairs", open: plain },
];

/** Runs that nobody kills: what the others are measured against. */
export const unkilled: readonly Policy[] = [
  { name: "fault-free", about: "a plain loop, never killed", keeps: "nothing", open: plain },
  { name: "ours-unkilled", about: "AgentRewind as it comes, never killed", keeps: "pairs", open: plain },
];

export const openOptions = (policy: Policy, trace: Trace): Partial<OpenOptions> => {
  const chosen = policy.open[trace.kind];
  if (trace.kind === "files") return chosen;
  return { ...chosen, environment: "sandbox", sandbox: { network: "own", ...chosen.sandbox } };
};
