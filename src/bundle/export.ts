// Writes a thread, or one checkpoint of it, with everything that it needs into one file.
import { resolve } from "node:path";
import { type Breathe, makeBreather } from "../breathe.ts";
import { snapshotKind } from "../environment/directory/reach.ts";
import type { Environment, Portable, Problem } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import { contextKind } from "../store/contexts.ts";
import { openDatabase, type Sql } from "../store/database.ts";
import type { Layout } from "../store/layout.ts";
import type { Objects } from "../store/objects.ts";
import { content, type Kind } from "../store/reach.ts";
import type { ThreadRow } from "../store/rows.ts";
import { formatVersion } from "../store/schema.ts";
import { bundleFormat, pieceSize, recordKind } from "./format.ts";
import { thisMachine } from "./likeness.ts";
import { ObjectTable } from "./object-table.ts";
import { reachedFrom } from "./objects-out.ts";
import { ThreadRows } from "./rows-out.ts";
import { type Header, imageAboutSchema, type SandboxPart } from "./schema.ts";
import { BundleWriter } from "./writer.ts";

export interface ExportSource {
  readonly layout: Layout;
  readonly objects: Objects;
  readonly environment: Environment;
  readonly environmentId: string;
  readonly epoch: number;
  /** Real path. */
  readonly workspace: string;
  readonly thread: ThreadRow;
  /** One alone; null: the whole thread. */
  readonly checkpoint: { readonly id: number; readonly name: string } | null;
  readonly headName: string;
}

export interface Exported {
  /** Absolute path of the bundle. */
  readonly file: string;
  readonly bytes: number;
  readonly thread: string;
  /** The one that was exported alone; null for the whole thread. */
  readonly checkpoint: string | null;
  /** How many checkpoints it holds. */
  readonly checkpoints: number;
  /** What of the files it does not hold, and why. */
  readonly problems: readonly Problem[];
}

/**
 * The file has its name when it is whole and on disk. Nothing is changed in the workspace; what the store keeps of it meanwhile is freed by the next gc.
 * @throws BAD_ARGUMENT, NOT_AVAILABLE, STORE_CORRUPT, DISK_FULL, WRITE_FAILED
 */
export async function exportBundle(source: ExportSource, to: string): Promise<Exported> {
  const { environment, layout, objects } = source;
  const portable = requirePortable(environment);
  const file = resolve(to);
  const release = portable?.hold();
  // A moment of its own: what is recorded, pruned and moved meanwhile is not seen.
  const sql = openDatabase(layout.catalog);
  let writer: BundleWriter | undefined;
  try {
    return await objects.use(async () => {
      sql.exec("BEGIN");
      writer = new BundleWriter(file);
      const { problems, checkpoints } = await write(source, portable, sql, writer);
      reportProgress("export", "waiting for the disk");
      const bytes = await writer.finish();
      fault("export.placed");
      return {
        ...{
          file,
          bytes,
          thread: source.thread.name,
          checkpoint: source.checkpoint?.name ?? null,
          checkpoints,
          problems,
        },
      };
    });
  } catch (error) {
    writer?.discard();
    throw error;
  } finally {
    sql.close();
    release?.();
  }
}

function requirePortable({ kind, portable }: Environment): Portable | undefined {
  if (kind === "directory" || portable !== undefined) return portable;
  throw new RewindError("NOT_AVAILABLE", `There are no bundles of an environment of the kind "${kind}".`, {
    hint: "Its states are kept by the program that brings it.",
  });
}

async function write(
  source: ExportSource,
  portable: Portable | undefined,
  sql: Sql,
  writer: BundleWriter,
): Promise<{ problems: Problem[]; checkpoints: number }> {
  const { environment, environmentId, objects, thread, checkpoint, workspace } = source;
  const breathe = makeBreather();
  const rows = new ThreadRows(sql, { environment: environmentId, thread, checkpoint: checkpoint?.id ?? null });
  const states = new Set<string>();
  const images = new Set<string>();
  for (const { files, processes } of rows.needed()) {
    for (const name of files) states.add(name);
    for (const name of processes) images.add(name);
    await breathe();
  }
  const problems: Problem[] = [];
  const sandbox = portable === undefined ? null : await describe(portable, states, images, problems);
  const { capabilities, kind } = environment;
  writer.addJson(recordKind.header, {
    ...{ format: bundleFormat, store: formatVersion, createdAt: new Date().toISOString() },
    scope: checkpoint === null ? "thread" : "checkpoint",
    source: { workspace, thread: thread.name, checkpoint: source.headName },
    environment: { kind: kind as "directory", epoch: source.epoch, capabilities: { ...capabilities }, sandbox },
    machine: thisMachine(),
    threads: [...rows.threads],
  } satisfies Header);

  const met = new ObjectTable();
  const put = async (of: Kind, name: string): Promise<void> => {
    for await (const found of reachedFrom(objects, met, of, Buffer.from(name, "hex"), breathe))
      writer.add(found.kind.bit, found.bytes);
  };
  let done = 0;
  for (const { context } of rows.needed()) {
    reportProgress("export", "writing the checkpoints", ++done, rows.checkpoints);
    await put(contextKind, context);
  }
  const snapshots = sandbox === null ? [...states] : [sandbox.base, ...sandbox.states.map((one) => one.files)];
  for (const [index, name] of snapshots.entries()) {
    reportProgress("export", "writing the files", index + 1, snapshots.length);
    await put(snapshotKind, name);
  }
  for (const value of rows.journalValues()) await put(content, value);
  for (const name of images) await writeImage(writer, portable as Portable, name, breathe);
  for (const row of rows.rows()) {
    writer.addJson(recordKind.row, row);
    await breathe();
  }
  return { problems, checkpoints: rows.checkpoints };
}

/** Its states become snapshots of directories: their contents are stored, where the store does not have them yet. */
async function describe(
  portable: Portable,
  states: ReadonlySet<string>,
  images: ReadonlySet<string>,
  problems: Problem[],
): Promise<SandboxPart> {
  const { workspace, overlays, options } = portable.opened;
  const base = await portable.base();
  problems.push(...base.problems);
  const described: { name: string; files: string }[] = [];
  for (const [index, name] of [...states].entries()) {
    reportProgress("export", "reading the sandbox's files", index + 1, states.size);
    const found = await portable.files(name);
    // Each state tells of what the one before has told already.
    problems.push(...found.problems.filter((one) => !problems.some(({ path }) => path === one.path)));
    described.push({ name, files: found.name });
  }
  const parts: SandboxPart["images"] = [];
  for (const name of images) {
    const { kind, criu, kernel } = aboutOf(portable, name);
    parts.push({ name, kind, criu, kernel, programs: [...(await portable.programs(name))] });
  }
  return { workspace, overlays: [...overlays], options, base: base.name, states: described, images: parts };
}

/** Of restores, not of the image, or told beside it. */
const isLeftOut = (name: string): boolean => name === "about.json" || name.endsWith(".log") || name === "stats-restore";

const aboutOf = (portable: Portable, name: string) => imageAboutSchema.parse(portable.imageAbout(name));

async function writeImage(writer: BundleWriter, portable: Portable, name: string, breathe: Breathe): Promise<void> {
  writer.addJson(recordKind.image, { name, about: aboutOf(portable, name) });
  for (const file of await portable.imageFiles(name)) {
    if (isLeftOut(file.name)) continue;
    writer.addJson(recordKind.imageFile, { name: file.name, size: file.size });
    for await (const piece of file.read(pieceSize)) {
      writer.add(recordKind.imageBytes, piece);
      await breathe();
    }
  }
}
