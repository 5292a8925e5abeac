// What an adapter must find again in another process and what no rewind takes back: kept with a checkpoint, until that is pruned.
import type { SessionDeps } from "./deps.ts";
import { jsonSerializer } from "./serializer.ts";
import type { Tree } from "./tree.ts";

export class Journal {
  readonly #deps: Pick<SessionDeps, "catalog" | "objects" | "assertOpen">;
  readonly #tree: Tree;

  constructor(deps: Pick<SessionDeps, "catalog" | "objects" | "assertOpen">, tree: Tree) {
    this.#deps = deps;
    this.#tree = tree;
  }

  /**
   * Keeps JSON values under their keys, all or none, with the thread's head; what was under a key before is replaced. They survive a kill when this resolves.
   * @throws DISK_FULL
   */
  async put(values: Readonly<Record<string, unknown>>): Promise<void> {
    const { catalog, objects, assertOpen } = this.#deps;
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
    });
  }

  /** Undefined where nothing is kept under the key. @throws STORE_CORRUPT, CLOSED */
  get(key: string): unknown {
    const { catalog, objects, assertOpen } = this.#deps;
    assertOpen();
    const { thread } = this.#tree;
    const name = thread === undefined ? undefined : catalog.journal(thread.id, key);
    return name === undefined ? undefined : jsonSerializer.decode(objects.get(Buffer.from(name, "hex")));
  }
}
