// The report of `doctor`, and how a person reads it.
import type { Need } from "../environment/sandbox/needs.ts";
import type { EbpfProbe } from "../inspector/ebpf/probe.ts";
import type { Survey } from "../store/survey.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine, safe } from "../text/safe.ts";
import { bytes, plural } from "../text/words.ts";

export interface Problem {
  readonly level: "error" | "warning";
  readonly message: string;
  readonly hint: string;
}

/** What is known only where SQLite works. */
export interface Addition {
  /** What snapshots of the workspace do not hold on this machine; null where that cannot be told. */
  readonly lacks: readonly string[] | null;
  /** Of the workspace; null where nothing is recorded. */
  readonly recorded: { readonly threads: number; readonly checkpoints: number; readonly held: boolean } | null;
  /** Of the whole store; null where there is none. */
  readonly contents: {
    readonly format: number;
    readonly bytes: number;
    readonly workspaces: number;
    readonly threads: number;
    readonly checkpoints: number;
    /** Null where looking took too long, or something is damaged. */
    readonly packs: Survey | null;
    /** Null where there is none. */
    readonly softLimit: number | null;
  } | null;
  /** Paths of what killed owners of the store's sandboxes left on this machine; null where there is no store. */
  readonly orphans: { readonly found: readonly string[]; readonly removed: readonly string[] } | null;
}

export interface Report extends Addition {
  readonly ok: boolean;
  readonly version: string;
  readonly node: { readonly version: string; readonly supported: boolean };
  readonly platform: {
    readonly name: string;
    readonly release: string;
    readonly arch: string;
    readonly tested: boolean;
  };
  readonly user: { readonly id: number | null; readonly name: string | null; readonly root: boolean };
  readonly sqlite: { readonly available: boolean; readonly reason: string | null };
  readonly addon: { readonly available: boolean; readonly reason: string | null };
  /** Says what changed between two captures; without it everything is looked at. */
  readonly watcher: { readonly available: boolean; readonly reason: string | null };
  /** Programs in the kernel that see effects as they happen. Nothing asks them yet: states are compared. */
  readonly ebpf: EbpfProbe;
  /** What an environment with processes would need. None of it is needed by a directory. */
  readonly sandbox: { readonly available: boolean; readonly needs: readonly Need[] };
  readonly workspace: { readonly path: string; readonly exists: boolean; readonly fileSystem: string | null };
  readonly store: { readonly path: string; readonly freeBytes: number | null };
  readonly problems: readonly Problem[];
}

export function reportLines(report: Report, paint: Paint): string[] {
  const { node, platform, user, sqlite, addon, watcher, workspace, store } = report;
  const line = (name: string, value: string): string => `${paint("dim", name.padEnd(13))} ${oneLine(value)}`;
  return [
    line("agentrewind", report.version),
    line("node", node.version + (node.supported ? "" : " (too old)")),
    line("platform", `${platform.name} ${platform.release} ${platform.arch}${platform.tested ? "" : " (untested)"}`),
    line("user", `${user.name ?? "unknown"}, id ${user.id ?? "unknown"}${user.root ? " (root)" : ""}`),
    line("sqlite", sqlite.available ? "available" : "not available"),
    line("addon", addon.available ? "available" : "not available"),
    line("fidelity", fidelity(report)),
    line("watcher", watcher.available ? "available" : `not available: ${watcher.reason}`),
    line("ebpf", describeEbpf(report)),
    line("workspace", describeWorkspace(workspace)),
    line("recorded", describeRecorded(report)),
    line("store", safe(store.path)),
    line("contents", describeContents(report)),
    line("packs", describePacks(report)),
    line("free", store.freeBytes === null ? "unknown" : bytes(store.freeBytes)),
    line("left over", describeOrphans(report)),
    line("sandbox", report.sandbox.available ? "available" : "not available"),
    ...report.sandbox.needs.map((need) => line(`  ${need.name}`, describeNeed(need))),
    "",
    ...(report.problems.length === 0
      ? [paint("green", "Nothing is missing.")]
      : report.problems.map(
          ({ level, message, hint }) =>
            `${paint(level === "error" ? "red" : "yellow", level)}: ${oneLine(`${message} ${hint}`)}`,
        )),
  ];
}

function describeNeed({ status, reason, hint }: Need): string {
  if (status === "available") return reason;
  return `${status === "unsupported" ? "not available" : "not known"}: ${reason}. ${hint}`;
}

function describeEbpf({ ebpf: { status, reason } }: Report): string {
  if (status === "available") return `available, for sandboxes with inspector: "ebpf"`;
  return `${status === "unsupported" ? "not available" : "not known"}: ${reason}`;
}

function fidelity({ lacks }: Report): string {
  if (lacks === null) return "unknown";
  return lacks.length === 0 ? "full" : `without ${lacks.join("; without ")}`;
}

function describeWorkspace({ path, exists, fileSystem }: Report["workspace"]): string {
  if (!exists) return `${path} (not there)`;
  return fileSystem === null ? path : `${path} (${fileSystem})`;
}

function describeRecorded({ recorded }: Report): string {
  if (recorded === null) return "nothing";
  const { threads, checkpoints, held } = recorded;
  const by = held ? "held by a running process" : "not held by a process";
  return `${plural(threads, "thread")}, ${plural(checkpoints, "checkpoint")}; ${by}`;
}

function describeContents({ contents }: Report): string {
  if (contents === null) return "there is no store yet, or it cannot be read";
  const { format, bytes: size, workspaces, threads, checkpoints } = contents;
  return `format ${format}, ${bytes(size)}: ${plural(workspaces, "workspace")}, ${plural(threads, "thread")}, ${plural(checkpoints, "checkpoint")}`;
}

function describeOrphans({ orphans }: Report): string {
  const found = orphans?.found ?? [];
  const removed = orphans?.removed ?? [];
  return [
    ...(removed.length > 0 ? [`removed ${removed.join(", ")}`] : []),
    ...(found.length > 0 || removed.length === 0 ? [found.length === 0 ? "nothing" : found.join(", ")] : []),
  ].join("; ");
}

function describePacks({ contents }: Report): string {
  if (contents === null) return "none";
  const { packs, softLimit } = contents;
  const limit = softLimit === null ? "no soft limit" : `soft limit ${bytes(softLimit)}`;
  if (packs === null) return `not looked through; ${limit}`;
  const { packs: count, packBytes, liveBytes, reclaimableBytes } = packs;
  return `${count}, ${bytes(packBytes)}, of which ${bytes(liveBytes)} alive; gc would give back ${bytes(reclaimableBytes)}; ${limit}`;
}
