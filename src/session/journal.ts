// What an adapter must find again in another process and what no rewind takes back: kept with a checkpoint, until that is pruned.
import type { JournalRow } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { jsonSerializer } from "./serializer.ts";
import type { Tree } from "./tree.ts";

type JournalDeps = Pick<SessionDeps, "catalog" | "coordinator" | "objects" | "assertOpen">;

export class Journal {
  readonly #deps: JournalDeps;
  readonly #tree: Tree;

  constructor(deps: JournalDeps, tree: Tree) {
    this.#deps = deps;
    this.#tree = tree;
  }

  /**
   * Keeps JSON values under their keys, all or none, with the thread's head; what was under a key before is replaced. They survive a kill when this resolves.
   * @param options.ofTools results of tools: where an environment ends with its owner and begins again at a pair from before what they did, nothing is kept of them
   * @throws DISK_FULL
   */
  async put(values: Readonly<Record<string, unknown>>, { ofTools = false } = {}): Promise<void> {
    const { catalog, coordinator, objects, assertOpen } = this.#deps;
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
      const store = async (): Promise<void> => {
        const { id, head } = this.#tree.made();
        catalog.putJournal({ thread: id, checkpoint: head, ofTools }, names);
      };
      // A pair of another thread that is being captured may have come too early for what the tool did: its result is put behind that.
      await (ofTools && coordinator.isBusy() ? coordinator.exclusive(store) : store());
    });
  }

  /** Undefined where nothing is kept under the key. @throws STORE_CORRUPT, CLOSED */
  get(key: string): unknown {
    const { objects, assertOpen } = this.#deps;
    assertOpen();
    const row = this.#row(key);
    return row === undefined ? undefined : jsonSerializer.decode(objects.get(Buffer.from(row.value, "hex")));
  }

  #row(key: string): JournalRow | undefined {
    const { thread } = this.#tree;
    return thread === undefined ? undefined : this.#deps.catalog.journal(thread.id, key);
  }
}
