// What is kept of the turns, and how a workspace is opened for that.
import type { OpenOptions } from "agentrewind";

export interface Arm {
  readonly name: string;
  /** In one sentence, for the table. */
  readonly about: string;
  /** Whether turns go through a thread at all. */
  readonly records: boolean;
  /** More options of `openRewind`. */
  readonly open: Partial<OpenOptions>;
}

export const arms: readonly Arm[] = [
  {
    name: "none",
    about: "the same sandboxes and the same commands; no thread, no turn, no checkpoint",
    records: false,
    open: {},
  },
  {
    name: "full",
    about:
      'a capture of both halves at every turn (`inspector: "scan"`, policy `every`): CRIU dumps the processes each time, only the memory that was written since the dump before, and files are a snapshot; an equal dump gets the old name afterwards',
    records: true,
    open: { inspector: "scan", capture: "every" },
  },
  {
    name: "full-memory",
    about: "as `full`, but every dump holds all of the memory (`trackMemory: false`)",
    records: true,
    open: { inspector: "scan", capture: "every", sandbox: { trackMemory: false } },
  },
  { name: "ours", about: "AgentRewind as it comes", records: true, open: {} },
];

export const openOptions = ({ open }: Arm): Partial<OpenOptions> => ({
  ...open,
  environment: "sandbox",
  sandbox: { network: "own", ...open.sandbox },
});
