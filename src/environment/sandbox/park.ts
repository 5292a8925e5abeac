// What a sandbox must know when it is opened again: how its last owner left it (F-65).
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder, replaceFile, writeAll } from "../../store/io.ts";
import type { Manifest } from "../environment.ts";
import { type SandboxOptions, sandboxOptions } from "./options.ts";

export interface Parked {
  /** Closed in order: the live folder is as it was, and these processes belong to it; null where none ran. */
  readonly processes: string | null;
  readonly files: string | null;
}

export class ParkingNote {
  readonly #path: string;

  constructor(store: string, id: string) {
    const folder = join(store, "sandboxes");
    makeFolder(folder, 0o700);
    this.#path = join(folder, `${id}.json`);
  }

  /** As it was last opened: whoever opens it without saying gets the same. */
  options(): SandboxOptions {
    return sandboxOptions.safeParse(this.#content()?.options).data ?? {};
  }

  /** What was last said of results that are not on the host; "" for nothing. */
  told(): string {
    return this.#content()?.told ?? "";
  }

  /** undefined where it was never closed in order since it was last opened. */
  read(): Parked | undefined {
    return this.#content()?.parked ?? undefined;
  }

  #content(): { parked: Parked | null; options?: unknown; told?: string } | undefined {
    if (!existsSync(this.#path)) return undefined;
    try {
      return JSON.parse(readFileSync(this.#path, "utf8")) as { parked: Parked | null };
    } catch {
      return undefined;
    }
  }

  async write(parked: Manifest | null, options: SandboxOptions, told = this.told()): Promise<void> {
    const bytes = Buffer.from(JSON.stringify({ parked, options, told }));
    await replaceFile(this.#path, async (fd) => {
      writeAll(fd, bytes, 0);
      return bytes.length;
    });
  }
}
