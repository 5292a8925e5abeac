// The read guard: an agent changes an existing file only while its conversation holds what the file holds.
import { createHash } from "node:crypto";
import { RewindError } from "../errors.ts";
import type { Moment } from "../session/moment.ts";
import type { Conversation, Knowledge } from "./tool.ts";

interface Stamp {
  readonly digest: string;
  readonly moment: Moment;
}

/** Of one file: with every rewind the older ones may be in force again. */
const stampsKept = 50;

/**
 * The rule: `edit` and `write` of a file that is there are refused unless the newest that the conversation in force knows of it, by `read`, `write` or
 * `edit`, is its present content, byte for byte. What was learned in turns that a rewind took back is not known any more, and known again after an undo;
 * after a rewind of the files alone the content decides. In doubt (a new process, a conversation that cannot be told) nothing is known: the agent reads again.
 *
 * The guard only ever refuses. No tool shortens its answer because of it: `read` returns the text each time, since a rewind, a summary or a trimmed
 * history may have taken the earlier answer out of the model's sight.
 */
export class ReadGuard {
  readonly #conversations = new Map<string, Map<string, Stamp[]>>();

  /** What this call of the conversation may learn and must know. */
  knowledge(conversation: Conversation): Knowledge {
    const moment = conversation.moment();
    const files = this.#filesOf(conversation.name);
    return {
      learn: (path, bytes) => {
        const stamps = files.get(path) ?? [];
        files.set(path, [{ digest: digestOf(bytes), moment }, ...stamps].slice(0, stampsKept));
      },
      require(path, bytes) {
        const known = files.get(path)?.find((stamp) => conversation.holds(stamp.moment));
        if (known === undefined) {
          throw new RewindError("FILE_NOT_READ", `You have not read ${path} in this conversation as it stands.`, {
            hint: "Read it first, so that nothing is overwritten that you have not seen.",
          });
        }
        if (known.digest === digestOf(bytes)) return;
        throw new RewindError("FILE_CHANGED", `${path} has changed since you last read or wrote it.`, {
          hint: "Read it again, then make the change to what it holds now.",
        });
      },
    };
  }

  #filesOf(name: string): Map<string, Stamp[]> {
    const files = this.#conversations.get(name) ?? new Map<string, Stamp[]>();
    this.#conversations.set(name, files);
    return files;
  }
}

/** For callers who do without: nothing is remembered or asked for. */
export const noKnowledge: Knowledge = { learn() {}, require() {} };

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64");
