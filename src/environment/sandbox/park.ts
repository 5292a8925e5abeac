// What a sandbox must know when it is opened again: how its last owner left it (F-65).
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { makeFolder, replaceFileNow, syncFile, syncFolder } from "../../store/io.ts";
import type { Manifest } from "../environment.ts";
import { type SandboxOptions, sandboxOptions } from "./options.ts";

export interface Parked {
  /** Closed in order: the live folder is as it was, and these processes belong to it; null where none ran. */
  readonly processes: string | null;
  readonly files: string | null;
}

const arrangementSchema = z.strictObject({
  /** Where the workspace lies inside. */
  workspace: z.string(),
  overlays: z.array(z.strictObject({ path: z.string(), name: z.string() })),
});
/** Of a sandbox that came from elsewhere: its processes know its paths as they were there. */
export type Arrangement = z.infer<typeof arrangementSchema>;

interface Note {
  readonly parked: Parked | null;
  readonly options?: unknown;
  readonly arrangement?: unknown;
  readonly told?: string;
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

  /** undefined where all paths inside are those of the host. */
  arrangement(): Arrangement | undefined {
    return arrangementSchema.safeParse(this.#content()?.arrangement).data;
  }

  #content(): Note | undefined {
    if (!existsSync(this.#path)) return undefined;
    try {
      return JSON.parse(readFileSync(this.#path, "utf8")) as Note;
    } catch {
      return undefined;
    }
  }

  /** What was written survives a power loss when it resolves. */
  async sync(): Promise<void> {
    await syncFile(this.#path);
    await syncFolder(dirname(this.#path));
  }

  /** What is not given of `more` stays as it is. */
  write(
    parked: Manifest | null,
    options: SandboxOptions,
    more: { readonly told?: string; readonly arrangement?: Arrangement } = {},
  ): void {
    const { told = this.told(), arrangement = this.arrangement() } = more;
    const bytes = Buffer.from(JSON.stringify({ parked, options, told, arrangement } satisfies Note));
    replaceFileNow(this.#path, bytes);
  }
}
