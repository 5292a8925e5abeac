// A workspace and a store for one test, and sessions on them that are verified when the test ends.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type OpenOptions, openRewind, type Rewind } from "agentrewind";
import { afterEach, expect } from "vitest";

export interface Place {
  /** Holds everything of the test. */
  readonly base: string;
  readonly workspace: string;
  readonly store: string;
}

const places: string[] = [];
const sessions: { rewind: Rewind; damaged: boolean }[] = [];

export function makePlace(parent: string = tmpdir()): Place {
  const base = mkdtempSync(join(realpathSync(parent), "agentrewind-test-"));
  places.push(base);
  const place = { base, workspace: join(base, "workspace"), store: join(base, "store") };
  mkdirSync(place.workspace);
  return place;
}

export interface UseOptions extends Partial<OpenOptions> {
  /** The test damages the store: findings are expected. */
  readonly damaged?: boolean;
}

/** Opens the place; when the test ends, `verify` must find nothing. */
export async function useRewind(place: Place, { damaged = false, ...options }: UseOptions = {}): Promise<Rewind> {
  const rewind = await openRewind({ workspace: place.workspace, store: place.store, ...options });
  sessions.push({ rewind, damaged });
  return rewind;
}

/** Verifies and closes a session within a test. */
export async function endSession(rewind: Rewind): Promise<void> {
  const index = sessions.findIndex((one) => one.rewind === rewind);
  const [session] = sessions.splice(index, 1);
  try {
    if (session?.damaged === false) expect(await rewind.verify()).toEqual([]);
  } finally {
    await rewind.close();
  }
}

afterEach(async () => {
  try {
    for (const { rewind } of [...sessions]) await endSession(rewind);
  } finally {
    // rm removes trees deeper than PATH_MAX and folders that lack permissions; fs.rmSync does not.
    for (const base of places.splice(0)) execFileSync("rm", ["-rf", base]);
  }
});

/** Code of the RewindError that a promise rejects with; fails when it resolves. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  const failure = await promise.then(
    () => undefined,
    (error: unknown) => error as { code?: string },
  );
  expect(failure, "it should have been refused").toBeDefined();
  return failure?.code ?? String(failure);
}
