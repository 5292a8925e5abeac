// What a killed owner leaves on the machine is found by verify and doctor, and `doctor --clean` removes it, and nothing that is in use.
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { cgroup1Mount, cgroup2Mount, mountAt } from "../../src/environment/sandbox/mount-table.ts";
import { lacking } from "../capabilities.ts";
import { run } from "../helpers/command.ts";
import { startSteps } from "../helpers/steps.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { needed } from "./machine.ts";

const options = { environment: "sandbox", sandbox: { limits: { pids: 100 } } } as const;

describe.skipIf(lacking(...needed))("orphans", () => {
  const command = async ({ workspace, store }: Place, ...args: string[]) => {
    const { stdout, status } = await run(["--workspace", workspace, "--store", store, "--json", ...args]);
    return { status, json: JSON.parse(stdout) };
  };

  test("of a killed owner are found, and removed when nobody uses them", async () => {
    const place = makePlace();
    const owner = startSteps({ ...place, options }, [
      { op: "open" },
      { op: "turn", context: { messages: ["m0"] }, durable: true },
      { op: "hold" },
    ]);
    const ended = once(owner, "exit");
    for await (const text of owner.stdout as AsyncIterable<Buffer>) if (`${text}`.includes("holding")) break;
    const id = basename(
      readdirSync(join(place.store, "sandboxes")).find((name) => name.endsWith(".json")) as string,
      ".json",
    );
    const store = realpathSync(place.store);
    const groups = [cgroup2Mount(), cgroup1Mount("pids")].map((mount) => join(mount ?? "", "agentrewind", id));
    const things = [...groups.filter((path) => existsSync(path)), join(store, "layers")];

    expect((await command(place, "doctor")).json.orphans, "in use").toEqual({ found: [], removed: [] });
    expect((await command(place, "doctor", "--clean")).json.orphans, "in use").toEqual({ found: [], removed: [] });
    expect((await command(place, "verify")).json).toEqual([]);

    owner.kill("SIGKILL");
    await ended;
    await sleep(300);
    /** Verifying has taken up what was left: another owner is killed. */
    const kill = async (): Promise<void> => {
      const other = startSteps({ ...place, options }, [{ op: "open" }, { op: "hold" }]);
      const over = once(other, "exit");
      for await (const text of other.stdout as AsyncIterable<Buffer>) if (`${text}`.includes("holding")) break;
      other.kill("SIGKILL");
      await over;
      await sleep(300);
    };
    const dump = join(store, "images", id, ".unfinished");
    mkdirSync(dump, { recursive: true });
    const wanted = [...things, dump].sort();
    const doctor = (await command(place, "doctor")).json;
    expect(doctor.orphans.found.sort()).toEqual(wanted);
    expect(doctor.problems.map(({ message }: { message: string }) => message).join()).toContain(
      "Killed owners of sandboxes left",
    );
    const { stdout } = await run(["--workspace", place.workspace, "--store", place.store, "--json", "verify"]);
    const named = JSON.parse(stdout).map(({ kind, where }: { kind: string; where: string }) => [kind, where]);
    expect(named).toEqual(expect.arrayContaining(things.map((path) => ["orphan", path])));
    await kill();
    mkdirSync(dump, { recursive: true });
    const cleaned = (await command(place, "doctor", "--clean")).json.orphans;
    expect({ found: cleaned.found, removed: cleaned.removed.sort() }).toEqual({ found: [], removed: wanted });
    for (const path of groups) expect(existsSync(path)).toBe(false);
    expect(mountAt(join(store, "layers"))).toBeUndefined();

    const rewind = await useRewind(place, options);
    expect(rewind.thread("t").head).toBe("c0");
    await endSession(rewind);
  });

  test("of another sandbox of the store are named by verify, beside one that runs", async () => {
    const place = makePlace();
    const other: Place = { ...place, workspace: join(place.base, "other") };
    mkdirSync(other.workspace);
    const owner = startSteps({ ...other, options }, [{ op: "open" }, { op: "hold" }]);
    const ended = once(owner, "exit");
    for await (const text of owner.stdout as AsyncIterable<Buffer>) if (`${text}`.includes("holding")) break;
    const rewind = await useRewind(place, { ...options, damaged: true });
    await rewind.thread("t").checkpoint({ context: { messages: ["m0"] } });
    expect(await rewind.verify()).toEqual([]);
    owner.kill("SIGKILL");
    await ended;
    await sleep(300);
    const found = await rewind.verify();
    expect(found.length).toBeGreaterThan(0);
    for (const { kind, problem } of found)
      expect([kind, problem]).toEqual(["orphan", "is a control group of a sandbox that nobody has open"]);
    expect((await command(place, "verify")).status).toBe(1);
    await command(place, "doctor", "--clean");
    expect(await rewind.verify()).toEqual([]);
    expect((await rewind.environment.exec("echo alive")).stdout).toBe("alive\n");
    await rewind.close();
  });
});
