// Checks that everything a checkpoint points to is there and whole.
import { makeBreather } from "../breathe.ts";
import { contextObjects } from "../store/contexts.ts";
import type { SessionDeps } from "./deps.ts";
import { manifestOf } from "./move.ts";
import { checkpointId } from "./views.ts";

export interface Finding {
  readonly kind: "context" | "environment" | "parent" | "head" | "intent" | "orphan";
  /** The thread and checkpoint concerned, "main/c3", the intent, or the path of what a killed process left. */
  readonly where: string;
  readonly problem: string;
}

type VerifyDeps = Pick<SessionDeps, "catalog" | "objects" | "environment">;

/** Empty when the store is sound for this environment. */
export async function verifyEnvironment(deps: VerifyDeps, holder: boolean): Promise<Finding[]> {
  const { catalog, objects, environment } = deps;
  const findings: Finding[] = [];
  const rows = catalog.allCheckpoints();
  const contexts = new Map<string, string | undefined>();
  const manifests = new Map<string, string | undefined>();
  /** Contexts share nearly all of their objects: each is read once. */
  const checked = new Map<string, string | undefined>();
  const breathe = makeBreather();
  for (const row of rows) {
    const where = `${row.thread_name}/${checkpointId(row)}`;
    if (!contexts.has(row.context)) contexts.set(row.context, await checkContext(row.context));
    const context = contexts.get(row.context);
    if (context !== undefined) findings.push({ kind: "context", where, problem: context });
    if (row.parent !== null && catalog.checkpoint(row.parent) === undefined)
      findings.push({ kind: "parent", where, problem: "its parent is not in the store" });
    if (row.state === "not-restorable") continue;
    const manifest = manifestOf(row);
    const key = `${manifest.files} ${manifest.processes}`;
    if (!manifests.has(key)) {
      const problems = await environment.verify(manifest);
      manifests.set(key, problems.length === 0 ? undefined : `object ${problems[0]?.path}: ${problems[0]?.reason}`);
    }
    const problem = manifests.get(key);
    if (problem !== undefined) findings.push({ kind: "environment", where, problem });
  }
  for (const thread of catalog.threads()) {
    if (thread.head !== null && catalog.checkpoint(thread.head) === undefined) {
      findings.push({ kind: "head", where: thread.name, problem: "its head is not in the store" });
    }
  }
  if (holder) {
    for (const intent of catalog.openIntents()) {
      findings.push({
        kind: "intent",
        where: `${intent.kind} ${intent.id}`,
        problem: "was begun and neither finished nor undone",
      });
    }
  }
  return findings;

  async function checkContext(name: string): Promise<string | undefined> {
    try {
      for (const hash of contextObjects(objects, name)) {
        const object = hash.toString("hex");
        if (!checked.has(object)) checked.set(object, objects.check(hash));
        const wrong = checked.get(object);
        if (wrong !== undefined) return `object ${object}: ${wrong}`;
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }
}
