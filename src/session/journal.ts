// What an adapter must find again in another process and what no rewind takes back: kept with a checkpoint, until that is pruned.
import type { JournalRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { jsonSerializer } from "./serializer.ts";
import type { Tree } from "./tree.ts";

type JournalDeps = Pick<SessionDeps, "catalog" | "objects" | "assertOpen" | "gone">;

export class Journal {
  readonly #deps: JournalDeps;
  readonly #tree: Tree;

  constructor(deps: JournalDeps, tree: Tree) {
    this.#deps = deps;
    this.#tree = tree;
  }

  /**
   * Keeps JSON values under their keys, all or none, with the thread's head; what was under a key before is replaced. They survive a kill when this resolves.
   * @throws DISK_FULL
   */
  async put(values: Readonly<Record<string, unknown>>): Promise<void> {
    const { catalog, objects, assertOpen, gone } = this.#deps;
    assertOpen();
    await objects.use(async () => {
      const batch = objects.batch();
      const names: [string, string][] = [];
      try {
        for (const [key, value] of Object.entries(values)) {
          names.push([key, batch.put(await jsonSerializer.encode(value)).toString("hex")]);
        }
      } catch (error) {
        batch.discard();
        throw error;
      }
      await batch.commit();
      const thread = this.#tree.made();
      catalog.putJournal(thread.id, thread.head, names);
      for (const [key] of names) gone?.since.add(keyIn(thread.id, key));
    });
  }

  /** Undefined where nothing is kept under the key. @throws STORE_CORRUPT, CLOSED */
  get(key: string): unknown {
    const { objects, assertOpen } = this.#deps;
    assertOpen();
    const row = this.#row(key);
    return row === undefined ? undefined : jsonSerializer.decode(objects.get(Buffer.from(row.value, "hex")));
  }

  /**
   * Whether what was done in the environment before the value was put is gone: its owner was killed before the next pair was captured, and the environment was
   * brought back to the one before.
   */
  isGone(key: string): boolean {
    const { gone } = this.#deps;
    const { thread } = this.#tree;
    if (gone === undefined || thread === undefined || gone.since.has(keyIn(thread.id, key))) return false;
    return this.#row(key)?.checkpoint === gone.checkpoint;
  }

  #row(key: string): JournalRow | undefined {
    const { thread } = this.#tree;
    return thread === undefined ? undefined : this.#deps.catalog.journal(thread.id, key);
  }
}

const keyIn = (thread: number, key: string): string => `${thread}/${key}`;
