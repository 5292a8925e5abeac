// A sandbox that is observed: what can be told without a snapshot or a dump, and what stays of it.
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type ObserveReport, openRewind, type Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { openTheLayers } from "../../src/environment/sandbox/open.ts";
import { loadNative, type Native } from "../../src/native.ts";
import { openStore } from "../../src/store/store.ts";
import { lacking } from "../capabilities.ts";
import { startSteps } from "../helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { needed } from "../sandbox/machine.ts";

const options = { environment: "sandbox", sandbox: { network: "own" } } as const;

const observe = (place: Place, told: ObserveReport[]): Promise<Rewind> =>
  openRewind({
    ...{ workspace: place.workspace, store: place.store, ...options },
    inspector: { observe: true, report: (report) => told.push(report) },
  });

async function turns(rewind: Rewind, lines: readonly string[]): Promise<void> {
  const thread = rewind.thread("t1");
  for (const [n, line] of [...lines, undefined].entries()) {
    const before = lines[n - 1];
    const actions = before === undefined ? [] : [{ tool: "bash", input: before, output: "", failed: false }];
    const turn = await thread.beginTurn({ messages: ["go"] }, { activity: { said: "", actions } });
    if (line === undefined) await turn.gate({ tools: false, calls: [] });
    else {
      await turn.gate({ calls: [{ tool: "bash", input: line }] });
      await rewind.environment.exec(line);
    }
  }
}

/** What the store has of sandboxes besides the files of their present. */
async function statesOf({ store: folder }: Place): Promise<string[]> {
  const store = openStore(folder);
  const native = loadNative().native as Native;
  const found: string[] = [];
  for (const id of readdirSync(join(folder, "images"))) {
    found.push(...readdirSync(join(folder, "images", id)));
    const { layers } = await openTheLayers({ store: folder, id, objects: store.open(id).objects }, { native });
    found.push(...layers.names());
    await layers.close();
  }
  store.close();
  return found;
}

describe.skipIf(lacking(...needed))("a sandbox", () => {
  test("is classified, keeps its files, and has neither states nor images", async () => {
    const place = makePlace();
    writeFileSync(join(place.workspace, "host"), "host");
    const told: ObserveReport[] = [];
    const rewind = await observe(place, told);
    await turns(rewind, ["true", "ls -la /", "echo made > made", "v=1", "sleep 300 & disown", "rm host"]);
    expect(await codeOf(rewind.thread("t1").rewind({ to: "c1" }))).toBe("OBSERVING");
    await rewind.close();
    const [report] = told as [ObserveReport];
    expect(report).toMatchObject({ turns: 7, uncompared: 1 });
    const changed = (call: string): unknown => {
      const cause = report.causes.find((one) => one.call === call);
      return cause && [cause.files, cause.processes];
    };
    expect(changed("bash: ls")).toEqual([0, 0]);
    expect(changed("bash: echo")).toEqual([1, 0]);
    expect(changed("bash: sleep")).toEqual([0, 1]);
    // With a process whose memory only a dump would tell, everything behind it counts.
    expect(changed("bash: rm")).toEqual([1, 1]);
    expect(report.notes[0]).toContain("only a dump would tell");
    expect(await statesOf(place)).toEqual([]);
    expect(readFileSync(join(place.workspace, "host"), "utf8")).toBe("host");
    const recorded = await useRewind(place, options);
    expect(recorded.threads()).toEqual([]);
    expect((await recorded.environment.exec("cat made; ls host; jobs")).stdout).toBe("made\n");
  });

  test("is refused where somebody holds it, and where a killed owner left work that no pair has", async () => {
    const place = makePlace();
    const holder = await useRewind(place, options);
    expect(await codeOf(observe(place, []))).toBe("ENVIRONMENT_BUSY");
    await endSession(holder);
    const owner = startSteps({ ...place, options }, [
      { op: "open" },
      { op: "checkpoint", context: { messages: ["m0"] } },
      { op: "exec", command: "echo more > more" },
      { op: "hold" },
    ]);
    for await (const line of createInterface({ input: owner.stdout as NodeJS.ReadableStream })) {
      if (line.includes('"holding"')) break;
      if (line.includes('"error"')) throw new Error(line);
    }
    owner.kill("SIGKILL");
    await once(owner, "exit");
    expect(await codeOf(observe(place, []))).toBe("NOT_AVAILABLE");
    const recorded = await useRewind(place, options);
    const left = recorded
      .thread("t")
      .checkpoints({ all: true })
      .find(({ label }) => label?.startsWith("found after"));
    expect(left?.state).not.toBe("not-restorable");
    await recorded.thread("t").rewind({ to: left?.id as string });
    await endSession(recorded);
    // As it was closed: with what was there.
    const told: ObserveReport[] = [];
    const observed = await observe(place, told);
    expect((await observed.environment.exec("cat more")).stdout).toBe("more\n");
    await turns(observed, ["cat more"]);
    await observed.close();
    expect(told[0]).toMatchObject({ turns: 2, classes: { files: { turns: 0 }, both: { turns: 0 } } });
  });
});
