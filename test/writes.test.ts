// Every change of a file fails once, as on a full disk, a broken one, or one that takes half: nothing is lost or mixed, and the retry succeeds.
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import type { Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { loadNative } from "../src/native.ts";
import { armWriteFault } from "../src/write-faults.ts";
import { digestTree } from "./helpers/digest.ts";
import { endSession, makePlace, type Place, useRewind } from "./helpers/workspace.ts";

/** Changes are made by TypeScript and by the addon's threads; each side counts its own. */
const sides = {
  typescript: armWriteFault,
  addon(fault: string | undefined): boolean {
    const [kind = "", nth = "0"] = fault?.split(":") ?? [];
    return addon?.armWriteFault(["", "ENOSPC", "EIO", "SHORT"].indexOf(kind), Number(nth)) ?? false;
  },
} as const;
const addon = loadNative().native;

const long = process.env.AGENTREWIND_LONG === "1";
const kinds = ["ENOSPC", "SHORT", "EIO"] as const;
type Kind = (typeof kinds)[number];

interface Scene {
  readonly place: Place;
  readonly sh: (command: string) => void;
  readonly digest: () => string[];
  rewind: Rewind;
  round: number;
}

interface Operation {
  readonly name: string;
  /** Brings the scene to where the operation can begin. */
  readonly prepare: (scene: Scene) => Promise<void>;
  readonly run: (scene: Scene) => Promise<unknown>;
  /** What the workspace must be when the operation has succeeded; null: what it was before. */
  readonly tree: (scene: Scene, first: string[], before: string[]) => string[];
}

const messages = (round: number): string[] => ["m0", `m${round}`, "x".repeat(round * 100)];

/** Differs from the first state, and from every other round, in each way that a restore treats differently. */
const spoil = ({ sh, round }: Scene): void =>
  sh(
    `echo ${round} > a; seq ${round} 40000 > big; rm -rf d l; mkdir -p e; echo ${round} > e/new; chmod 600 b; ln -f a linked; seq ${round} 9000 > d`,
  );

const operations: readonly Operation[] = [
  {
    name: "checkpoint",
    prepare: async (scene) => spoil(scene),
    run: async ({ rewind, round }) => {
      const turn = await rewind.thread("t").beginTurn({ messages: messages(round) });
      await turn.gate();
      const made = await turn.durable;
      if (made.state === "not-restorable")
        throw Object.assign(new Error(made.reason ?? ""), { code: "NOT_RESTORABLE" });
    },
    tree: (_scene, _first, before) => before,
  },
  {
    name: "rewind",
    prepare: async (scene) => spoil(scene),
    run: ({ rewind, round }) =>
      rewind.thread("t").rewind({ to: "c0", lesson: `learned ${round}`, key: `call-${round}` }),
    tree: (_scene, first) => first,
  },
  {
    name: "undo",
    async prepare(scene) {
      spoil(scene);
      await scene.rewind.thread("t").rewind({ to: "c0" });
    },
    run: ({ rewind }) => rewind.thread("t").undo(),
    tree: (scene, _first, _before) => scene.digest(),
  },
  {
    name: "open and close",
    async prepare(scene) {
      spoil(scene);
      await scene.rewind.thread("t").checkpoint({ context: { messages: messages(scene.round) } });
      await endSession(scene.rewind);
    },
    async run(scene) {
      scene.rewind = await useRewind(scene.place);
    },
    tree: (_scene, _first, before) => before,
  },
];

const allowed: Record<Kind, readonly string[]> = {
  ENOSPC: ["DISK_FULL", "RESTORE_FAILED", "NOT_RESTORABLE"],
  SHORT: ["DISK_FULL", "RESTORE_FAILED", "NOT_RESTORABLE"],
  EIO: ["WRITE_FAILED", "RESTORE_FAILED", "NOT_RESTORABLE"],
};

const cases = (addon === null ? (["typescript"] as const) : (["typescript", "addon"] as const)).flatMap((side) =>
  operations
    .filter(({ name }) => side === "typescript" || name !== "open and close")
    .map((one) => [side, one] as const),
);

describe("F-6, F-21 to F-24: every change of a file fails once", () => {
  for (const [side, operation] of cases) {
    const arm = sides[side];
    // The short form takes the kinds in turn.
    for (const only of long ? kinds : [undefined]) {
      test(`${side}: ${operation.name}, ${only ?? kinds.join(" or ")}`, { timeout: 1_200_000 }, async () => {
        const place = makePlace();
        const sh = (command: string): void => {
          execFileSync("sh", ["-c", command], { cwd: place.workspace });
        };
        const scene: Scene = {
          place,
          sh,
          digest: () => digestTree(place.workspace),
          rewind: await useRewind(place),
          round: 0,
        };
        sh("mkdir d; echo 1 > a; echo 1 > b; echo 1 > d/f; seq 1 50000 > big; ln -s a l; ln a linked");
        await scene.rewind.thread("t").checkpoint({ context: { messages: messages(0) } });
        const first = scene.digest();
        const failed: string[] = [];
        for (let nth = 1, reached = true; reached; nth++) {
          scene.round = nth;
          const kind = only ?? (kinds[nth % kinds.length] as Kind);
          await operation.prepare(scene);
          const before = scene.digest();
          arm(`${kind}:${nth}`);
          let error: (Error & { code?: string }) | undefined;
          try {
            await operation.run(scene);
          } catch (thrown) {
            error = thrown as Error & { code?: string };
          } finally {
            reached = arm(undefined);
          }
          const at = `${kind} at change ${nth}`;
          try {
            if (error !== undefined) {
              failed.push(error.code ?? String(error));
              expect(allowed[kind], `${error.stack}`).toContain(error.code);
              expect(scene.digest()).toEqual(before);
            }
            if (scene.rewind !== undefined && operation.name !== "open and close")
              expect(await scene.rewind.verify()).toEqual([]);
            if (error !== undefined) await operation.run(scene);
            if (operation.name !== "undo") expect(scene.digest()).toEqual(operation.tree(scene, first, before));
            else expect(scene.digest()).not.toEqual(first);
            expect(readdirSync(place.workspace).filter((name) => name.startsWith(".agentrewind"))).toEqual([]);
            await endSession(scene.rewind);
            scene.rewind = await useRewind(place);
          } catch (thrown) {
            (thrown as Error).message = `${at}: ${(thrown as Error).message}`;
            throw thrown;
          }
        }
        await scene.rewind.thread("t").rewind({ to: "c0" });
        expect(scene.digest(), "what was stored before is whole").toEqual(first);
        expect(failed.length, "something failed").toBeGreaterThan(0);
      });
    }
  }
});
