// Whether anything can have happened in a sandbox, as the kernel's counters or the times of its processes tell it: never "none" where something has, as an independent reader sees it from outside.
import { execFileSync } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Activity } from "../../src/environment/sandbox/activity.ts";
import { SandboxGroup } from "../../src/environment/sandbox/cgroup.ts";
import { cpuTimeActivity } from "../../src/environment/sandbox/cpu-time.ts";
import { cgroup2Mount } from "../../src/environment/sandbox/mount-table.ts";
import type { Manifest } from "../../src/index.ts";
import { openActivity } from "../../src/inspector/ebpf/activity.ts";
import { lacking } from "../capabilities.ts";
import { pythonPath } from "../helpers/python.ts";
import { talk, until } from "./held.ts";
import { Random } from "./history.ts";
import { type Machine, needed, openMachine } from "./machine.ts";
import { differences, Oracle, type State } from "./oracle.ts";

const long = process.env.AGENTREWIND_LONG === "1";
const seed = Number(process.env.AGENTREWIND_SEED ?? 1);
/** A sandbox each, with so many turns. */
const sandboxes = long ? 50 : 2;
const turns = long ? 100 : 8;

const python = (program: string): string =>
  `${pythonPath()} -ISc '${program.replaceAll("\n", "; ")}' >/dev/null 2>&1 </dev/null & echo $!`;
const server = python(
  'import socket,select\ns=socket.socket()\ns.setsockopt(1,2,1)\ns.bind(("127.0.0.1",0))\ns.listen()\nopen("port","w").write(str(s.getsockname()[1]))\ne=select.epoll()\ne.register(s)\nn=[0]\nexec("while True:\\n e.poll()\\n c=s.accept()[0]\\n n[0]+=1\\n c.send(str(n[0]).encode())\\n c.close()")',
);

const lacks = lacking(...needed, "python");
const kinds = ["cpu time", ...(lacking("ebpf") ? [] : ["ebpf"])];
const activityOf = async (kind: string): Promise<Activity> => (kind === "ebpf" ? openActivity() : cpuTimeActivity);

/** What only the kernel's counters tell from what goes on: a capture holds and wakes it. */
const idle: [string, string][] = [
  ["a program that sleeps", "sleep 1000 & echo $!"],
  ["a server that waits for connections", `${server}; until [ -s port ]; do sleep 0.01; done`],
  ["a program that waits for another", "(sleep 1000; true) & echo $!"],
];

describe.skipIf(lacks).each(kinds)("what %s tells of a sandbox", (kind) => {
  let machine: Machine;
  const open = async (): Promise<void> => {
    machine = await openMachine({ activity: await activityOf(kind) });
  };
  const captured = async (): Promise<Manifest> => (await machine.environment.capture().captured).manifest;
  const changed = (since: Manifest) => machine.environment.changed?.(since);
  const processes = (): number[] => group().processes();
  const group = (): SandboxGroup => new SandboxGroup(cgroup2Mount() as string, machine.name);
  const withCommand = (text: string): number => {
    const found = processes().find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text));
    if (found === undefined) throw new Error(`${text} does not run`);
    return found;
  };
  const endAll = async (): Promise<void> => {
    for (const pid of processes())
      if (/^(python|sleep|bash\0-c)/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8").replace(/^.*\//, "")))
        process.kill(pid, "SIGKILL");
    await machine.exec("wait; rm -f port; true");
  };

  beforeAll(open);
  afterAll(() => machine.end());

  test.each([["nothing but waiting shells", "true"], ...(kind === "ebpf" ? idle : [])])(
    "%s: none, capture after capture",
    async (_, line) => {
      await machine.exec(line);
      try {
        // What has just been started comes to rest.
        await until(async () => (await changed(await captured())) === "none");
        const since = await captured();
        // It makes the call again that the capture has broken.
        await until(async () => (await changed(since)) === "none");
        for (let i = 0; i < 3; i++) {
          expect(await changed(since)).toBe("none");
          await sleep(20);
        }
        expect(await changed({ ...since, files: "other" })).toBe("unknown");
      } finally {
        await endAll();
      }
    },
  );

  test.each<[string, string, () => unknown]>([
    ["a command", "true", () => machine.exec("true")],
    ["a file that the owner writes", "true", () => machine.environment.writeFile("written", "x")],
    [
      "a connection from outside",
      `${server}; until [ -s port ]; do sleep 0.01; done`,
      async () => talk(Number(Buffer.from(await machine.environment.readFile("port")).toString()), ""),
    ],
    ["a signal from outside", "sleep 1000 & echo $!", () => process.kill(withCommand("1000"), "SIGSTOP")],
    ["a clock inside", "sleep 0.3 & echo $!", () => until(() => !processes().some((pid) => name(pid) === "sleep"))],
    [
      "a clock that expires though nobody waits for it",
      `${python('import ctypes,time\nl=ctypes.CDLL(None)\nt=l.timerfd_create(1,0)\nl.timerfd_settime(t,0,(ctypes.c_long*4)(0,0,0,200000000),None)\nopen("port","w").write("1")\ntime.sleep(1000)')}; until [ -s port ]; do sleep 0.01; done`,
      () => sleep(300),
    ],
    [
      "a datagram for a socket that nobody asks",
      `${python('import socket,time\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\ns.bind("\\0quiet-test")\nopen("port","w").write("1")\ntime.sleep(1000)')}; until [ -s port ]; do sleep 0.01; done`,
      () =>
        execFileSync(pythonPath() as string, [
          "-ISc",
          'import socket; socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).sendto(b"x",b"\\0quiet-test")',
        ]),
    ],
    [
      "memory that is written now and then",
      python("import time\nn=[0]\nexec('while True:\\n time.sleep(0.03)\\n n[0]+=1')".replaceAll("'", '"')),
      () => sleep(150),
    ],
  ])("%s is never none", async (_, line, act) => {
    await machine.exec(line);
    try {
      const since = await captured();
      await act();
      expect(await changed(since)).toBe("unknown");
    } finally {
      await endAll();
    }
  });

  test("a change on the host below it is told when it is seen, and until it was named", async () => {
    await until(async () => (await changed(await captured())) === "none");
    const since = await captured();
    writeFileSync(join(machine.workspace, "on-host"), "x");
    await until(async () => (await changed(since)) === "unknown");
    const { manifest, problems } = await machine.environment.capture().captured;
    expect(problems.map(({ path }) => path)).toContain("on-host");
    expect(await changed(manifest)).toBe("none");
  });

  const name = (pid: number): string => {
    try {
      return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
    } catch {
      return "";
    }
  };

  test("a program that never waits is never none", async () => {
    await machine.exec("(while :; do :; done) & echo $!");
    const since = await captured();
    for (let i = 0; i < 20; i++) {
      expect(await changed(since)).toBe("unknown");
      await sleep(i);
    }
    const [busy] = processes().filter((pid) => /^\d+ \(bash\) R/.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
    process.kill(busy as number, "SIGKILL");
    await machine.exec("wait");
  });

  test("behind a restore nothing is told before the next capture; a way into it that the host knows counts in its life", async () => {
    const first = await captured();
    await machine.environment.restore(first);
    expect(await changed(first)).toBe("unknown");
    await captured();
    expect(await changed(await captured())).toBe("none");
    expect(machine.environment.path("x")).toContain("/root/");
    expect(await changed(await captured())).toBe("unknown");
    await machine.environment.restore(first);
    await captured();
    expect(await changed(await captured())).toBe("none");
  });

  test("an ended life tells nothing", async () => {
    const since = await captured();
    execFileSync("kill", ["-9", String(processes()[0])]);
    await until(() => processes().length === 0);
    expect(await changed(since)).toBe("unknown");
  });
});

const begun = [
  "sleep 1000 & echo $!",
  `${server}; until [ -s port ]; do sleep 0.01; done`,
  "mkfifo f; (read x <f) & echo $!",
  python('import time,sys\nn=[0]\nexec("while True:\\n time.sleep(float(sys.argv[1]))\\n n[0]+=1")').replace(
    " >/dev/null",
    " 0.4 >/dev/null",
  ),
  "(while sleep 0.7; do echo x >>ticks; done) & echo $!",
  "(sleep 1; echo once >once) & echo $!",
  "(sleep 300 | cat) & echo $!",
];

const isOnItsWay = ({ processes }: State): boolean =>
  Object.values(processes).some(({ threads = [] }) => threads.some(({ call = "" }) => call === "running"));

/**
 * Less what standing still does to who waits: where exactly it goes on in its call, the signals that it holds back for the time of one (ppoll of the tree's root), and the
 * time that is left, which the kernel writes into the memory of `sleep`.
 */
function lasting({ processes, ...rest }: State): unknown {
  const seen = Object.entries(processes).map(([pid, { threads = [], pages, ...one }]) => {
    const isRoot = one.argv?.startsWith("agentrewind-root") === true;
    const waiting = threads.map(({ call = "", SigBlk, stack, ...other }: Record<string, string>) => ({
      ...other,
      ...(isRoot ? {} : { SigBlk, stack, call: call.replace(/ \S+$/, "").replace(/^219 /, "230 ") }),
    }));
    return [pid, { ...one, threads: waiting, pages: one.argv?.startsWith("sleep\0") === true ? {} : pages }];
  });
  return { ...rest, processes: Object.fromEntries(seen) };
}

describe.skipIf(lacks).each(kinds)("an oracle of what %s tells to be unchanged", (kind) => {
  test.each(Array.from({ length: sandboxes }, (_, at) => seed + at))("seed %d", { timeout: 1_800_000 }, async (own) => {
    const machine = await openMachine({ network: "own", activity: await activityOf(kind) });
    const tree = new SandboxGroup(cgroup2Mount() as string, machine.name);
    const oracle = new Oracle();
    const random = new Random(own);
    const found = { kind, seed: own, turns: 0, none: 0, same: 0 };
    const lookOnce = async (): Promise<State> => {
      await tree.freeze();
      try {
        return await oracle.look(tree.tree);
      } finally {
        tree.thaw();
      }
    };
    // What was held still a moment before may be on its way back into its call.
    const look = async (): Promise<unknown> => {
      for (let tries = 1; ; tries++) {
        const state = await lookOnce();
        if (tries === 20 || !isOnItsWay(state)) return lasting(state);
        await sleep(2);
      }
    };
    try {
      if (kind === "ebpf") for (let i = random.below(3); i > 0; i--) await machine.exec(random.of(begun));
      for (let turn = 0; turn < turns; turn++) {
        if (random.below(4) === 0)
          await machine.exec(random.of(["true", "echo $RANDOM >made", "v=1", "sleep 0.1 & wait $!"]));
        // A look holds and wakes everything: the times of the processes tell of that as well. They are asked only where nobody but shells is there, which do nothing by themselves.
        const first = kind === "ebpf" ? undefined : await look();
        const { manifest } = await machine.environment.capture().captured;
        const before = first ?? (await look());
        await sleep(random.below(120));
        const pids = tree.processes();
        if (random.below(6) === 0) process.kill(random.of(pids.slice(1)) ?? pids[0], "SIGCONT");
        const told = await machine.environment.changed?.(manifest);
        const apart = differences(before, await look());
        found.turns++;
        if (apart.length === 0) found.same++;
        if (told !== "none") continue;
        found.none++;
        expect(apart, `AGENTREWIND_SEED=${own}, turn ${turn}`).toEqual([]);
      }
      console.log(`${kind}, seed ${own}: ${found.turns} turns, ${found.same} without a change, ${found.none} told so`);
      if (process.env.AGENTREWIND_REPORT !== undefined)
        appendFileSync(process.env.AGENTREWIND_REPORT, `${JSON.stringify(found)}\n`);
    } finally {
      oracle.end();
      await machine.end();
    }
  });
});
