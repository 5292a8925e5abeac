// What is known of the runs of one environment, a small file each (F-51): whoever opens the workspace next goes on from there.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { makeFolder, remove, replaceFileNow } from "../../../store/io.ts";
import type { RecordedProgram, Run } from "./run.ts";

const known = z.object({ pid: z.int(), start: z.string() });
export const recordedProgram: z.ZodType<RecordedProgram> = known.extend({
  command: z.string(),
  argv: z.array(z.string()),
  cwd: z.string(),
  env: z.array(z.string()),
  ids: z.tuple([z.int(), z.int(), z.array(z.int())]),
  umask: z.string(),
  streams: z.array(z.string()),
  ports: z.array(z.int()),
  forked: z.boolean(),
});
const note: z.ZodType<Omit<Run, "id">> = z.object({
  machine: z.string(),
  groups: z.array(z.int().min(2)),
  known: z.array(known),
  programs: z.array(known.extend({ about: recordedProgram, file: z.string().nullable() })),
  waiter: known.nullable(),
});

const name = /^([a-z0-9]+-[a-z0-9]+)\.json$/;

export class RunNotes {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  ids(): string[] {
    try {
      return readdirSync(this.#folder).flatMap((file) => name.exec(file)?.[1] ?? []);
    } catch {
      return [];
    }
  }

  /** undefined where it is gone, or was lost with the machine: then what it tells of is gone as well. */
  read(id: string): Run | undefined {
    try {
      const parsed = note.safeParse(JSON.parse(readFileSync(this.#path(id), "utf8")));
      return parsed.success ? { id, ...parsed.data } : undefined;
    } catch {
      return undefined;
    }
  }

  /** False where there is no room for it: then only this process knows of the run, and whoever reads its mark. */
  write({ id, ...about }: Run): boolean {
    const bytes = Buffer.from(JSON.stringify(about));
    try {
      makeFolder(this.#folder, 0o700);
      replaceFileNow(this.#path(id), bytes);
      return true;
    } catch {
      return false;
    }
  }

  /** One that cannot be removed is found to be over again the next time. */
  remove(id: string): void {
    try {
      remove(this.#path(id));
    } catch {
      // The disk does not take changes.
    }
  }

  #path(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}
