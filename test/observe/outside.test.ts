// `agentrewind observe` around programs that know nothing of AgentRewind: what is told from outside, and how they end.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { base, get, put, refused, run, start, store, workspace } from "../helpers/command.ts";
import { digestTree } from "../helpers/digest.ts";

/** Far longer than a busy machine keeps a script from its next command, and far shorter than it waits for its model. */
const pause = "1500";
const thinks = "sleep 4";

/** @param text of a shell script that waits for its model by `sleep` */
function script(text: string): string {
  const file = join(base, "agent.sh");
  writeFileSync(file, text);
  return file;
}

const observed = (text: string, ...options: string[]): string[] => [
  ...options,
  ...["observe", "--pause", pause, "--", "sh", script(text)],
];

/** Computes long enough to be seen. */
const work = "for i in $(seq 1 20); do sleep 0.01; done";

test("stretches of activity between pauses are turns", async () => {
  put("mine", "untouched");
  const [mine] = digestTree(workspace).filter((line) => line.includes("mine"));
  const ran = await run(
    observed(
      [
        `(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); ${work}; ls`,
        thinks,
        `bash -c 'echo a > made; ${work}'`,
        thinks,
        `bash -c 'sleep 300 > /dev/null 2>&1 & echo $! > ${base}/pid'; ${work}`,
        thinks,
        `kill $(cat ${base}/pid); bash -c 'rm made; ${work}'`,
        "exit 7",
      ].join("\n"),
      "--json",
    ),
  );
  expect(ran.status, ran.stderr).toBe(7);
  // Its own output went to stderr.
  expect(ran.stderr).toContain("mine\n");
  const report = JSON.parse(ran.stdout);
  expect(report).toMatchObject({ exitCode: 7, signal: null, source: "pauses", pauseMs: 1500, turns: 4, uncompared: 0 });
  expect(report.classes).toMatchObject({
    none: { turns: 1 },
    files: { turns: 1 },
    processes: { turns: 1 },
    both: { turns: 1 },
  });
  expect(report.causes.map((one: { call: string }) => one.call)).toEqual(expect.arrayContaining(["echo", "rm"]));
  // A part of the script that runs beside it is no command that it started.
  expect(report.causes.map((one: { call: string }) => one.call)).not.toContain("sh");
  expect(report.bytes).not.toBeNull();
  expect(report.policies).toHaveLength(6);
  expect(existsSync(store)).toBe(false);
  expect(readdirSync(workspace)).toEqual(["mine"]);
  expect(digestTree(workspace).filter((line) => line.includes("mine"))).toEqual([mine]);
});

test("a workspace that vanishes is a change, and the command goes on to its end", async () => {
  const ran = await run(observed(`sleep 0.2; rm -rf "$PWD"; ${work}; exit 9`, "--json"));
  expect(ran.status, ran.stderr).toBe(9);
  expect(JSON.parse(ran.stdout)).toMatchObject({ exitCode: 9, source: "pauses" });
});

test("the table says that it is an estimate, and how long a pause is", async () => {
  const ran = await run(observed("echo out; echo b > made"));
  expect(ran).toMatchObject({ status: 0, stdout: "out\n" });
  expect(ran.stderr).toMatch(
    /^Observed 1 stretch of activity in .* from outside, counted as turns: a pause of 1500 ms/,
  );
  expect(ran.stderr).toContain("estimate");
  expect(get("made")).toBe("b\n");
});

test("a program that does nothing changes nothing", async () => {
  const ran = await run(["--json", "observe", "--", "true"]);
  expect(ran.status).toBe(0);
  expect(JSON.parse(ran.stdout)).toMatchObject({
    classes: { files: { turns: 0 }, processes: { turns: 0 }, both: { turns: 0 } },
  });
});

test("what computes next to nothing and writes all the same is seen", async () => {
  const running = start(["--json", "observe", "--pause", "100", "--", "sh", "-c", "echo ready >&2; exec sleep 60"]);
  while (!running.stderr().includes("ready")) await sleep(20);
  for (const name of ["one", "two", "three"]) {
    // Whoever writes it: no process of the program does anything.
    await sleep(2_000);
    put(name, "quiet");
  }
  running.child.kill("SIGTERM");
  const report = JSON.parse((await running.ended).stdout);
  // The last may have been seen at the end alone.
  expect(report.classes.files.turns).toBeGreaterThanOrEqual(2);
});

test("a signal ends the program, and the table comes behind it; a second one ends what does not listen", async () => {
  const deaf = "trap '' TERM; echo made > made; echo ready >&2; while :; do sleep 0.2; done";
  const running = start(observed(deaf, "--json"));
  while (!running.stderr().includes("ready")) await sleep(20);
  running.child.kill("SIGTERM");
  await sleep(300);
  expect(running.child.exitCode).toBeNull();
  running.child.kill("SIGTERM");
  const ran = await running.ended;
  expect(ran.status).toBe(137);
  expect(JSON.parse(ran.stdout)).toMatchObject({ signal: "SIGKILL", source: "pauses", turns: 1 });
});

test("SIGINT that comes from nobody's terminal is passed on", async () => {
  const running = start(observed("echo ready >&2; exec sleep 60"));
  while (!running.stderr().includes("ready")) await sleep(20);
  running.child.kill("SIGINT");
  const ran = await running.ended;
  expect(ran.status).toBe(130);
  expect(ran.stderr).toContain("Observed ");
});

test("a program that crashes is told with the status that it had", async () => {
  const ran = await run(observed("echo made > made; kill -SEGV $$", "--json"));
  expect(ran.status).toBe(139);
  expect(JSON.parse(ran.stdout)).toMatchObject({ signal: "SIGSEGV", turns: 1 });
});

test("what cannot be started, and wrong usage", async () => {
  expect(await refused(["observe", "--", "no-such-program"], 1, "COMMAND_FAILED")).toContain("could not be started");
  await refused(["observe"], 2, "BAD_ARGUMENT");
  await refused(["observe", "--pause", "soon", "--", "true"], 2, "BAD_ARGUMENT");
  await refused(["--workspace", join(base, "nowhere"), "observe", "--", "true"], 1, "WORKSPACE_GONE");
});

test("killed, it leaves a folder that the next one removes", async () => {
  const own = join(base, "tmp");
  spawnSync("mkdir", [own]);
  const setting = { env: { TMPDIR: own } };
  const running = start(["observe", "--", "sh", "-c", `echo $$ > ${base}/pid; echo ready >&2; exec sleep 30`], setting);
  while (!running.stderr().includes("ready")) await sleep(20);
  running.child.kill("SIGKILL");
  process.kill(Number(readFileSync(join(base, "pid"), "utf8")), "SIGKILL");
  await running.ended;
  const [left] = readdirSync(own);
  expect(left).toMatch(/^agentrewind-observe-/);
  // Younger ones may be another's who is about to lock it.
  spawnSync("touch", ["-d", "1 hour ago", join(own, left as string)]);
  await run(["observe", "--", "true"], setting);
  expect(readdirSync(own)).toEqual([]);
  expect(readdirSync(tmpdir())).not.toContain(left);
});
