// The forms of a bundle's JSON: what is said of the machine, the sandbox and the thread. Whoever made it may mean no good: nothing is taken that has another form.
import { z } from "zod";
import type { SandboxOptions } from "../environment/sandbox/options.ts";
import { sandboxOptions } from "../environment/sandbox/options.ts";
import { bundleFormat } from "./format.ts";

const count = z.int().min(0);
/** Rows are named by their place among those of their table, from 1; none names a later one. */
const place = z.int().min(1);
const text = z.string();
const name = z.string().min(1).max(1024);
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.string().max(64);
/** Without "..", so that no path leads elsewhere than it says. */
const absolute = z
  .string()
  .max(4096)
  .refine(
    (path) => /^\/(?:[^/\0]+(?:\/[^/\0]+)*)?$/.test(path) && !/\/\.\.?(?:\/|$)/.test(path),
    "no plain absolute path",
  );

export const trailerSchema = z.strictObject({ records: count, bytes: count, digest: hash });

export const machineSchema = z.strictObject({
  architecture: name,
  kernel: name,
  /** What programs may have found in the processor, and use. */
  cpuFeatures: z.array(name).max(4096),
});

export const imageSchema = z.strictObject({
  name,
  kind: z.enum(["memory", "table"]),
  criu: text,
  kernel: text,
  /** Files of the machine that its processes have open or mapped: they must be the same where they go on. */
  programs: z.array(z.strictObject({ path: absolute, size: count, digest: hash })),
});

export const sandboxSchema = z.strictObject({
  /** Where the workspace lies inside. */
  workspace: absolute,
  overlays: z
    .array(z.strictObject({ path: absolute, name: z.string().regex(/^(?:root|workspace|mount-\d{1,6})$/) }))
    .min(1)
    .refine((all) => all[0]?.path === "/" && all[0].name === "root", "the first is the root")
    .refine((all) => new Set(all.map((one) => one.name)).size === all.length, "two have the same name")
    .refine((all) => new Set(all.map((one) => one.path)).size === all.length, "two have the same path"),
  options: sandboxOptions as unknown as z.ZodType<SandboxOptions>,
  /** The workspace as the sandbox does not see it changed. */
  base: hash,
  /** States of its layers, each as a snapshot of a directory, oldest first. */
  states: z.array(z.strictObject({ name, files: hash })),
  images: z.array(imageSchema),
});

export const threadSchema = z.strictObject({
  name,
  nextSeq: count,
  head: place.nullable(),
  forkedFrom: place.nullable(),
  lessons: z.array(place),
  effectsFrom: count,
  place: z
    .strictObject({
      at: z.record(z.string(), z.string()),
      touched: z.boolean(),
      waiting: z.array(z.string()),
      left: place.optional(),
      storing: z.strictObject({ name: text, from: text }).optional(),
    })
    .nullable(),
  activeAt: time,
});

/** What a reader of any version looks at first. */
export const formatSchema = z.looseObject({ format: place, store: place });

export const headerSchema = z.strictObject({
  format: z.literal(bundleFormat),
  /** Of the store whose objects it holds. */
  store: place,
  createdAt: time,
  scope: z.enum(["thread", "checkpoint"]),
  source: z.strictObject({ workspace: absolute, thread: name, checkpoint: name }),
  environment: z.strictObject({
    kind: z.enum(["directory", "sandbox"]),
    epoch: count,
    capabilities: z.looseObject({}),
    sandbox: sandboxSchema.nullable(),
  }),
  machine: machineSchema,
  /** The first is the thread; the others hold what it came from and what has no number of its own in it. */
  threads: z.array(threadSchema).min(1).max(10_000),
});

const paths = z.array(text);
const changes = z.looseObject({
  added: paths,
  removed: paths,
  changed: paths,
  mode: paths,
  type: paths,
  renamed: z.array(z.looseObject({ from: text, to: text })),
});
const problems = z.array(z.looseObject({ path: text, reason: text }));
const activity = z.looseObject({
  said: text,
  actions: z.array(z.looseObject({ tool: text, input: text, output: text, failed: z.boolean() })),
});
const timings = z.looseObject({ exposedMs: z.number(), overlappedMs: z.number(), bytes: z.number() });

const checkpointRow = z.strictObject({
  table: z.literal("checkpoint"),
  thread: count,
  seq: count,
  parent: place.nullable(),
  timeline: place.nullable(),
  turn: count,
  kind: z.string().regex(/^[a-z-]{1,32}$/),
  state: z.enum(["captured", "durable", "not-restorable"]),
  reason: text.nullable(),
  label: text.nullable(),
  anchor: text.nullable(),
  context: hash,
  messages: count,
  serializer: text,
  files: name.nullable(),
  processes: name.nullable(),
  tools: z.enum(["none", "waiting", "running", "ran", "unknown"]),
  toolsFiles: name.nullable(),
  toolsProcesses: name.nullable(),
  changes: changes.nullable(),
  activity,
  problems,
  timings,
  lessons: z.array(place),
  pruned: count,
  partial: z.strictObject({ from: place.nullable(), paths }).nullable(),
  /** [above, up to] of the thread's effects. */
  effects: z.array(z.tuple([count, count])),
  createdAt: time,
});

const rewindRow = z.strictObject({
  table: z.literal("rewind"),
  key: text.nullable(),
  kind: z.enum(["rewind", "undo", "align", "adopt"]),
  requestedBy: z.enum(["agent", "caller", "framework"]),
  scope: z.enum(["both", "environment", "context"]),
  headBefore: place.nullable(),
  leftAt: place.nullable(),
  leftSeq: count,
  target: place.nullable(),
  targetSeq: count,
  epoch: count,
  delivered: z.boolean(),
  undone: z.boolean(),
  result: z.looseObject({
    message: text,
    restored: changes,
    notRestored: problems,
    external: paths,
    conflicts: paths,
    lessons: z.array(place),
    timings,
  }),
  createdAt: time,
});

const lessonRow = z.strictObject({
  table: z.literal("lesson"),
  rewind: place,
  text,
  parts: z.looseObject({}).nullable(),
  covers: z.array(place).nullable(),
  createdAt: time,
});

const effectRow = z.strictObject({
  table: z.literal("effect"),
  checkpoint: place.nullable(),
  seq: count.nullable(),
  epoch: count,
  call: text.nullable(),
  tool: text,
  class: z.enum(["idempotent", "reversible", "compensable", "irreversible"]),
  description: text,
  arguments: text,
  consumes: z.array(text),
  state: z.enum([
    "recorded",
    "completed",
    "failed",
    "withdrawn",
    "replayed",
    "compensating",
    "compensated",
    "uncompensated",
  ]),
  result: text.nullable(),
  shown: text.nullable(),
  note: text.nullable(),
  replays: place.nullable(),
  consent: text.nullable(),
  createdAt: time,
  endedAt: time.nullable(),
});

const journalRow = z.strictObject({
  table: z.literal("journal"),
  checkpoint: place.nullable(),
  key: text,
  value: hash,
});
const namedRow = z.strictObject({ table: z.literal("named"), name: text, checkpoint: place });

export const rowSchema = z.discriminatedUnion("table", [
  checkpointRow,
  rewindRow,
  lessonRow,
  effectRow,
  journalRow,
  namedRow,
]);

/** Files of an image, as CRIU names them. */
export const imageFileSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,250}$/)
    .refine((one) => one !== "about.json"),
  size: count,
});

const ids = z.tuple([count, count, z.array(count)]);
export const imageAboutSchema = z.strictObject({
  kind: z.enum(["memory", "table"]),
  files: name,
  lastPid: count,
  processes: z.array(
    z.strictObject({
      pid: count,
      parent: count,
      role: z.enum(["root", "shell", "subshell", "background", "inner"]),
      command: text,
      argv: z.array(text),
      cwd: text,
      env: z.array(text),
      ids,
      umask: text,
      streams: z.array(text),
      ports: z.array(count),
      cpus: text,
      personality: text,
    }),
  ),
  ports: z.array(count),
  criu: text,
  kernel: text,
});
export const imageHeadSchema = z.strictObject({ name, about: imageAboutSchema });

export type Header = z.infer<typeof headerSchema>;
export type Row = z.infer<typeof rowSchema>;
export type ThreadPart = z.infer<typeof threadSchema>;
export type SandboxPart = z.infer<typeof sandboxSchema>;
export type ImagePart = z.infer<typeof imageSchema>;
export type Machine = z.infer<typeof machineSchema>;
export type RowOf<T extends Row["table"]> = Extract<Row, { table: T }>;
