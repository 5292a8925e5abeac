// A sandbox whose owner is killed: nothing of it runs on, and the next one that opens the workspace has the last pair, its processes included.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { cgroup2Mount } from "../../src/environment/sandbox/mount-table.ts";
import { lacking } from "../capabilities.ts";
import { pythonArguments, pythonPath } from "../helpers/python.ts";
import { runSteps, type Step, type StepResult, startSteps } from "../helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { keeperOf } from "./keeper-of.ts";
import { needed } from "./machine.ts";
import { mountsBelow } from "./place.ts";

const options = { environment: "sandbox", sandbox: { network: "own" } } as const;
const ask = "read -r n </dev/tcp/127.0.0.1/5077; echo $n";

/** A server that has answered once, and files elsewhere; then what no checkpoint has. */
const begin = (place: Place): Step[] => {
  const server = [pythonPath(), ...pythonArguments("answer.py")].slice(0, -1).join(" ");
  // Folders below /tmp are the sandbox's own.
  const script = readFileSync(pythonArguments("answer.py").at(-1) as string, "utf8");
  return [
    { op: "open" },
    { op: "exec", command: `cat > answer.py <<'Q'\n${script}\nQ\n${server} answer.py >/dev/null 2>&1 &` },
    { op: "exec", command: `until (: </dev/tcp/127.0.0.1/5077) 2>/dev/null; do sleep 0.02; done` },
    { op: "exec", command: `${ask}; echo 1 > ${place.workspace}/f; echo 1 > /etc/agent; v=kept; cd /usr` },
    { op: "turn", context: { messages: ["m0"] }, durable: true },
  ];
};
const goOn = (place: Place): Step => ({
  op: "exec",
  command: `${ask}; rm ${place.workspace}/f; echo 2 > /etc/agent; echo new > /var/lost; mkdir ${place.workspace}/d; v=lost; cd /`,
});

const groupOf = (place: Place): string => {
  const note = readdirSync(join(place.store, "sandboxes")).find((name) => name.endsWith(".json")) ?? "";
  return join(cgroup2Mount() as string, "agentrewind", basename(note, ".json"));
};

const runsIn = (group: string): boolean =>
  existsSync(group) && /^populated 1$/m.test(readFileSync(join(group, "cgroup.events"), "utf8"));

/** Resolves when `op` was said `count` times. */
async function said(child: ChildProcess, op: string, count = 1): Promise<void> {
  let left = count;
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const result = JSON.parse(line) as StepResult;
    if (result.error !== undefined) throw new Error(line);
    if (result.op === op && --left === 0) return;
  }
  throw new Error(`it ended before it said ${op}`);
}

async function expectNothingRuns(place: Place): Promise<void> {
  const group = groupOf(place);
  const deadline = Date.now() + 1_000;
  while (runsIn(group) && Date.now() < deadline) await sleep(10);
  expect(runsIn(group)).toBe(false);
  const store = realpathSync(place.store);
  expect(mountsBelow(place.base).filter((path) => path !== join(store, "layers"))).toEqual([]);
}

async function expectPair(rewind: Rewind): Promise<void> {
  const { environment, workspace } = rewind;
  const { stdout } = await environment.exec(
    `${ask}; cat ${workspace}/f /etc/agent; ls ${workspace}; ls -d /var/l*; pwd; echo $v`,
  );
  expect(stdout.split("\n")).toEqual([
    ...[expect.stringMatching(/^\d+$/), "1", "1", "answer.py", "f", "/var/lib", "/var/local", "/var/lock", "/var/log"],
    ...["/usr", "kept", ""],
  ]);
}

const reopen = (place: Place): Promise<Rewind> => useRewind(place, options);

describe.skipIf(lacking(...needed, "python"))("after a kill", () => {
  test("of the owner, alone or with its keeper, the last pair is back and what was changed behind it is kept", async () => {
    const place = makePlace();
    let owner = startSteps({ ...place, options }, [...begin(place), goOn(place), { op: "hold" }]);
    await said(owner, "holding");
    expect(await codeOf(reopen(place))).toBe("ENVIRONMENT_BUSY");
    expect(runsIn(groupOf(place))).toBe(true);
    owner.kill("SIGKILL");
    await once(owner, "exit");
    await expectNothingRuns(place);

    const rewind = await reopen(place);
    expect((await rewind.environment.exec(ask)).stdout).toBe("3\n");
    await expectPair(rewind);
    const left = rewind
      .thread("t")
      .checkpoints({ all: true })
      .filter(({ kind }) => kind === "safety");
    expect(left.map(({ label }) => label)).toEqual(["found after the end of a process that went on from c0"]);
    await rewind.thread("t").rewind({ to: left[0]?.id as string });
    expect((await rewind.environment.exec("cat /etc/agent /var/lost; ls")).stdout).toBe("2\nnew\nanswer.py\nd\n");
    await rewind.thread("t").rewind({ to: "c0" });
    await expectPair(rewind);
    await endSession(rewind);

    owner = startSteps({ ...place, options }, [{ op: "open" }, { op: "exec", command: ask }, { op: "hold" }]);
    await said(owner, "holding");
    const keeper = keeperOf(owner.pid as number);
    owner.kill("SIGKILL");
    process.kill(keeper, "SIGKILL");
    await once(owner, "exit");
    await expectNothingRuns(place);
    await expectPair(await reopen(place));
  });

  test.each([["layers.snapshot-made:3"], ["checkpoint.before-commit:2"]])(
    "in the middle of a checkpoint: %s",
    async (point) => {
      const place = makePlace();
      const steps: Step[] = [...begin(place), { op: "exec", command: "echo x > /etc/more" }, { op: "checkpoint" }];
      const { signal, results } = runSteps({ ...place, options, env: { AGENTREWIND_FAULT: point } }, steps);
      expect([signal, ...results.slice(-2).map(({ op }) => op)]).toEqual(["SIGKILL", "turn", "exec"]);
      await expectNothingRuns(place);
      const rewind = await reopen(place);
      expect(rewind.thread("t").head).toBe("c0");
      await expectPair(rewind);
      expect(
        rewind
          .thread("t")
          .checkpoints({ all: true })
          .map(({ kind }) => kind),
      ).toEqual(["turn", "safety"]);
    },
  );

  test("in the middle of a rewind, at every step of it and at any time", async () => {
    const place = makePlace();
    const first = runSteps({ ...place, options }, [
      ...begin(place),
      goOn(place),
      { op: "turn", context: { messages: ["m0", "m1"] }, durable: true },
      { op: "close" },
    ]);
    expect(first.results.filter(({ error }) => error !== undefined)).toEqual([]);
    const check = async (): Promise<void> => {
      await expectNothingRuns(place);
      const rewind = await reopen(place);
      const head = rewind.thread("t").head;
      const { stdout } = await rewind.environment.exec(`cat /etc/agent; ${ask} | wc -l`);
      const label = rewind
        .thread("t")
        .checkpoints({ all: true })
        .find(({ id }) => id === head)?.turn;
      expect(stdout).toBe(`${label}\n1\n`);
      await rewind.thread("t").rewind({ to: "c0" });
      await expectPair(rewind);
      await endSession(rewind);
    };
    for (const point of ["rewind.intent", "layers.reset-made", "rewind.restored"]) {
      // The first reset is that of the opening, where one is needed.
      const steps: Step[] = [{ op: "open" }, { op: "rewind", to: "c0" }, { op: "rewind", to: "c1" }];
      const ran = runSteps({ ...place, options, env: { AGENTREWIND_FAULT: `${point}:2` } }, steps);
      expect([point, ran.signal]).toEqual([point, "SIGKILL"]);
      await check();
    }
    for (const afterMs of [40, 200]) {
      const owner = startSteps({ ...place, options }, [{ op: "open" }, { op: "rewinds", to: ["c0", "c1"] }]);
      await said(owner, "rewound");
      await sleep(afterMs);
      owner.kill("SIGKILL");
      await once(owner, "exit");
      await check();
    }
  });

  test("closed in order, and opened again: everything goes on from there", async () => {
    const place = makePlace();
    runSteps({ ...place, options }, [...begin(place), goOn(place), { op: "close" }]);
    await expectNothingRuns(place);
    expect(existsSync(groupOf(place))).toBe(false);
    const rewind = await reopen(place);
    expect((await rewind.environment.exec(`${ask}; cat /etc/agent /var/lost; pwd; echo $v`)).stdout).toBe(
      "4\n2\nnew\n/\nlost\n",
    );
    expect(rewind.thread("t").checkpoints({ all: true }).length).toBe(1);
  });
});
