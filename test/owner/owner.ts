// What the process of an agent has in its hands: the workspace's owner, its tools, and the moments at which it is killed.
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openRewind, type Rewind } from "agentrewind";

export interface Given {
  readonly base: string;
  readonly baseURL: string;
  readonly kind: string;
  readonly environment: "sandbox" | "directory";
  /** The process ends in the middle of this tool, once. */
  readonly killIn?: string;
  /** The process ends when whoever keeps the conversation has stored this text, once. */
  readonly killStored?: string;
  /** The run that resumes brings a message of the person. */
  readonly says?: string;
  /** What is done where the conversation is refused. */
  readonly choice?: "back" | "files" | "stay";
  /** Every turn is captured, or none. */
  readonly capture?: "every" | "explicit";
  /** Nobody goes back behind what nothing takes back unless it is said. */
  readonly strict?: boolean;
}

export interface Owner extends Given {
  readonly rewind: Rewind;
  /** Makes a note in the environment; "send …" does so in the world as well. */
  act(text: string): Promise<string>;
  /** Ends the process, once. */
  end(): void;
}

export async function openOwner(given: Given): Promise<Owner> {
  const { base, environment, killIn, capture = "every", strict = false } = given;
  const rewind = await openRewind({
    workspace: join(base, "work"),
    store: join(base, "store"),
    ...{ environment, capture },
    ...(environment === "sandbox" ? { sandbox: { network: "own" } } : {}),
    ...(strict ? { cross: ["idempotent"] as const } : {}),
    effects: { send: { class: "irreversible" } },
  });
  const killed = join(base, "killed");
  const end = (): void => {
    if (existsSync(killed)) return;
    writeFileSync(killed, "");
    process.kill(process.pid, "SIGKILL");
  };
  return {
    ...given,
    rewind,
    async act(text) {
      if (text.startsWith("late")) await sleep(500);
      if (text.startsWith("send")) appendFileSync(join(base, "sent.txt"), `${text}\n`);
      const { exitCode, stderr } = await rewind.environment.exec(`echo ${text} >> log.txt`);
      if (exitCode !== 0) throw new Error(stderr);
      if (text === killIn) end();
      return `noted ${text}`;
    },
    end,
  };
}
