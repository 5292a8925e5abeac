// Commands in a sandbox: persistent shells, limits, input and output, and what a command can do to its own shell.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { codeOf } from "../helpers/workspace.ts";
import { type Machine, needed, openMachine } from "./machine.ts";

describe.skipIf(lacking(...needed))("commands", () => {
  let machine: Machine;
  const exec: Machine["exec"] = (command, options) => machine.exec(command, options);
  const says: Machine["says"] = (command, options) => machine.says(command, options);
  let shells = 0;
  /** A shell that no other test has used. */
  const fresh = () => ({ shell: `shell-${++shells}` });
  const running = (name: string) => exec(["pgrep", "-x", name]).then(({ exitCode }) => exitCode === 0);

  beforeAll(async () => {
    machine = await openMachine();
  });
  afterAll(() => machine?.end());

  test("a shell keeps its folder, variables, functions, aliases, options and jobs", async () => {
    const shell = fresh();
    await exec("cd /usr; v=1; export E=2; f() { echo f$v; }; alias l='echo alias'; umask 077; sleep 300 &", shell);
    expect(await says("pwd; f; l; printenv E; umask; jobs", shell)).toBe(
      "/usr\nf1\nalias\n2\n0077\n[1]+  Running                 sleep 300 &",
    );
    await exec("kill %1; wait", shell);
    expect(await says("jobs", shell)).toBe("");
  });

  test("each name is a shell of its own, and lines without one go to the same", async () => {
    await exec("v=main");
    const [one, other] = [fresh(), fresh()];
    await exec("v=one", one);
    expect(await says("echo $v", other)).toBe("");
    expect(await says("echo $v", one)).toBe("one");
    expect(await says("echo $v")).toBe("main");
  });

  test.each([
    ["echo o; echo e >&2; (exit 3)", { exitCode: 3, signal: null, stdout: "o\n", stderr: "e\n" }],
    ["bash -c 'kill -USR1 $$'", { exitCode: 138, signal: null, stdout: "" }],
    ["cat <<Q\nhi\nQ", { exitCode: 0, stdout: "hi\n" }],
    ["if then", { exitCode: 2, stdout: "" }],
    ["echo 'open", { exitCode: 2, stdout: "" }],
    ["# nothing", { exitCode: 0, stdout: "", stderr: "" }],
    ["", { exitCode: 0, stdout: "", stderr: "" }],
    ["cat; read x || echo none", { exitCode: 0, stdout: "none\n" }],
    [`echo ${"x".repeat(200_000)} | wc -c`, { exitCode: 0, stdout: "200001\n" }],
    ["nosuchprogram", { exitCode: 127 }],
    ["tty; echo $-", { exitCode: 0, stdout: expect.stringContaining("not a tty\n") }],
  ])("%#: a line ends as it says", async (command, expected) => {
    expect(await exec(command)).toMatchObject({ ...expected, timedOut: false, truncated: false });
  });

  test.each([
    ["exit 7", { exitCode: 7, signal: null }],
    ["set -e; false; echo not reached", { exitCode: 1, stdout: "" }],
    ["exec sh -c 'echo other; exit 4'", { exitCode: 4, stdout: "other\n" }],
    ["kill -9 $$", { exitCode: null, signal: "SIGKILL" }],
    ["kill -TERM $$", { exitCode: null, signal: "SIGTERM" }],
    ["kill -9 0", { exitCode: null, signal: "SIGKILL" }],
  ])("%s: a shell that a line ended is followed by another", async (command, expected) => {
    const shell = fresh();
    await exec("v=1", shell);
    expect(await exec(command, shell)).toMatchObject(expected);
    expect(await says("echo new$v", shell)).toBe("new");
  });

  test.each([
    ["PROMPT_COMMAND='echo mine'"],
    ["readonly PROMPT_COMMAND=false"],
    ["trap 'true' DEBUG ERR EXIT RETURN INT"],
    ["printf() { :; }; echo() { :; }; builtin() { :; }; unset() { :; }; eval() { :; }"],
    ["set -u"],
    ["set -o noclobber"],
    ["set -o posix"],
    ["shopt -s extdebug; set -T"],
    ["set +m"],
    ["exec 2>&1"],
    ["exec >/dev/null 2>/dev/null </dev/null"],
    ["mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone"],
    ["PATH=/nowhere"],
    ["unset HOME PATH PWD IFS; IFS=/"],
    ["return 0"],
    ["kill -INT $$"],
  ])("%s: what a line changes in its shell does not keep the next one from ending", async (command) => {
    const shell = fresh();
    await exec(command, { ...shell, timeoutMs: 10_000 });
    const { exitCode, timedOut } = await exec("(exit 3)", { ...shell, timeoutMs: 10_000 });
    expect({ exitCode, timedOut }).toEqual(
      command.includes("eval()") ? { exitCode: 0, timedOut: false } : { exitCode: 3, timedOut: false },
    );
  });

  describe("a time limit ends the command with its children and leaves the shell", () => {
    test.each([
      ["sleep 301"],
      ["while :; do :; done"],
      ["sleep 301 | cat | cat"],
      ["trap '' INT; sleep 301"],
      [`bash -c "trap '' INT TERM HUP; while :; do sleep 301; done"`],
      ["sleep 301 & sleep 301"],
      ["(sleep 301; sleep 301) & wait"],
      ["read x <>/tmp/never-$$ || mkfifo /tmp/never; read x </tmp/never"],
    ])("%s", async (command) => {
      const shell = fresh();
      await exec("v=kept; rm -f /tmp/never", shell);
      const { timedOut, exitCode, signal } = await exec(command, { ...shell, timeoutMs: 150 });
      expect({ timedOut, exitCode, signal }).toEqual({ timedOut: true, exitCode: null, signal: "SIGKILL" });
      expect(await says("echo $v", shell)).toBe("kept");
      expect(await running("sleep")).toBe(false);
    });

    test("a shell that nothing else stops is ended too", async () => {
      const shell = fresh();
      const { timedOut } = await exec("trap '' INT; while :; do :; done", { ...shell, timeoutMs: 150 });
      expect(timedOut).toBe(true);
      expect(await says("echo new$v", shell)).toBe("new");
    });

    test("a job of an earlier line is left alone", async () => {
      const shell = fresh();
      await exec("sleep 302 &", shell);
      await exec("sleep 301", { ...shell, timeoutMs: 150 });
      expect(await says("jobs -r", shell)).toContain("sleep 302");
      await exec("kill %1; wait", shell);
    });

    test("of a program", async () => {
      const { timedOut, signal } = await exec(["sh", "-c", "sleep 301; true"], { timeoutMs: 150 });
      expect({ timedOut, signal }).toEqual({ timedOut: true, signal: "SIGKILL" });
      expect(await running("sleep")).toBe(false);
    });
  });

  test("a signal ends a command in the same way, and one raised before lets none go on", async () => {
    const shell = fresh();
    await exec("v=kept", shell);
    const cut = await exec("sleep 301", { ...shell, signal: AbortSignal.timeout(150) });
    expect(cut).toMatchObject({ exitCode: null, signal: "SIGKILL", timedOut: false });
    expect(await exec("sleep 301", { ...shell, signal: AbortSignal.abort() })).toMatchObject({ signal: "SIGKILL" });
    expect(await says("echo $v", shell)).toBe("kept");
  });

  test("nothing of a command goes on behind its signal, at whatever moment of a busy machine", async () => {
    const shell = fresh();
    await exec("v=kept", shell);
    const busy = [1, 2, 3, 4].map(() => spawn("sh", ["-c", "while :; do :; done"]));
    try {
      for (let at = 0; at < 40; at += 2) {
        for (const how of [shell, { cwd: "." }]) {
          const control = new AbortController();
          const cut = exec("sleep 0.2; echo > /tmp/went-on", { ...how, signal: control.signal });
          await sleep(at);
          control.abort();
          expect(await cut).toMatchObject({ signal: "SIGKILL" });
        }
      }
      await sleep(300);
    } finally {
      for (const one of busy) one.kill("SIGKILL");
    }
    expect(await says("echo $v; test ! -e /tmp/went-on", shell)).toBe("kept");
  });

  test.each([["in a shell"], ["as a program"]])("input %s is text or bytes, of any size", async (how) => {
    const run = (line: string, input: string | Uint8Array) =>
      exec(how === "in a shell" ? line : ["bash", "-c", line], { input });
    expect((await run("cat", "text ü\n")).stdout).toBe("text ü\n");
    expect((await run("od -An -tx1", Buffer.from([0, 255, 10]))).stdout).toBe(" 00 ff 0a\n");
    const large = Buffer.alloc(8 << 20, "0123456789");
    const sum = createHash("sha256").update(large).digest("hex");
    expect((await run("sha256sum", large)).stdout).toBe(`${sum}  -\n`);
    expect((await run("cat", "")).stdout).toBe("");
  });

  test("output of any bytes is passed on as it comes", async () => {
    const seen: { stream: string; bytes: Buffer; at: number }[] = [];
    const onOutput = (stream: string, bytes: Uint8Array) =>
      seen.push({ stream, bytes: Buffer.from(bytes), at: performance.now() });
    await exec("printf '\\377\\000'; sleep 0.3; printf b; printf e >&2", { onOutput });
    const of = (name: string) => Buffer.concat(seen.filter(({ stream }) => stream === name).map(({ bytes }) => bytes));
    expect(of("stdout")).toEqual(Buffer.from([255, 0, 98]));
    expect(of("stderr").toString()).toBe("e");
    expect((seen.at(-1)?.at ?? 0) - (seen[0]?.at ?? 0)).toBeGreaterThan(100);
  });

  test("what is cut off can be read inside, and the files of old commands go", async () => {
    const long = await exec("head -c 30000000 /dev/zero | tr '\\0' x; echo end >&2", { maxBytes: 1000 });
    expect(long).toMatchObject({ truncated: true, stdout: "x".repeat(1000), stderr: "end\n" });
    expect(await says(`stat -c %s ${long.full?.stdout}; cat ${long.full?.stderr}`)).toBe("30000000\nend");
    const shell = fresh();
    await exec("(while :; do echo $$; sleep 0.05; done) & cd /", shell);
    const writing = await says("readlink /proc/$!/fd/1", shell);
    for (let n = 0; n < 40; n++) await exec("echo x; echo yy", { maxBytes: 2 });
    expect(Number(await says("ls /run/agentrewind/calls | wc -l"))).toBeLessThan(30 + shells);
    expect(await exec(`ls ${long.full?.stdout}`)).toMatchObject({ exitCode: 2 });
    expect(await says(`test -s ${writing} && echo there`)).toBe("there");
    await exec("kill %1; wait", shell);
  });

  test("lines for a shell that is busy run beside it, and those of many shells at once", async () => {
    const shell = fresh();
    const first = says("v=first; sleep 0.5; echo $v", shell);
    expect(await says("echo beside$v", shell)).toBe("beside");
    expect(await first).toBe("first");
    const start = Date.now();
    const many = Array.from({ length: 12 }, (_, n) => says(`sleep 0.3; echo ${n}`, fresh()));
    expect(await Promise.all(many)).toEqual(Array.from({ length: 12 }, (_, n) => `${n}`));
    expect(Date.now() - start).toBeLessThan(12 * 300);
  });

  test("folder and variables of one command", async () => {
    await exec("mkdir -p sub; ln -sfn /etc out");
    expect(await says('pwd; echo "$A"', { cwd: "sub", env: { A: "a\nb" } })).toBe(
      `${join(machine.workspace, "sub")}\na\nb`,
    );
    expect(await codeOf(exec("pwd", { cwd: "none" }))).toBe("COMMAND_FAILED");
    expect(await codeOf(exec("pwd", { cwd: "../.." }))).toBe("PATH_OUTSIDE");
    const hostile = { BASH_ENV: "/nowhere", ENV: "/nowhere", PROMPT_COMMAND: "exit 9", SHELLOPTS: "noexec" };
    expect(await codeOf(exec(["ls"], { env: { PATH: "/nowhere" } }))).toBe("COMMAND_FAILED");
    expect((await exec(["sh", "-c", "echo ok"], { env: hostile })).stdout).toBe("ok\n");
    for (const env of [{ "A=B": "1" }, { "": "1" }, { A: "1\0B=2" }, { "A\0B": "1" }])
      expect(await codeOf(exec("env", { env }))).toBe("BAD_ARGUMENT");
  });

  test.each([[[]], [[""]], ["a\0b"], [["echo", "a\0b"]]])("%j is refused", async (command) => {
    expect(await codeOf(exec(command))).toBe("BAD_ARGUMENT");
  });

  test.each([[["/nowhere"]], [["/etc/passwd"]], [["echo", "x".repeat(200_000)]]])(
    "%#: a program that cannot be started is an error",
    async (command) => {
      expect(await codeOf(exec(command))).toBe("COMMAND_FAILED");
    },
  );

  test("a shell may have any name", async () => {
    const names = ["", ".", "..", "a/b", "-n", "a b", "ü", "a".repeat(300), "../main", "main\n"];
    for (const [n, shell] of names.entries()) await exec(`v=${n}`, { shell });
    for (const [n, shell] of names.entries()) expect(await says("echo $v", { shell })).toBe(`${n}`);
  });

  test("how a command ended its shell is told as the shell said it, however often", async () => {
    const shell = fresh();
    for (let i = 0; i < 150; i++)
      expect(await exec("kill -TERM $$", shell), `${i}`).toMatchObject({ exitCode: null, signal: "SIGTERM" });
  });

  test("a command that removes the folder of the sandbox's own is told so, and the next ones run", async () => {
    expect(await codeOf(exec("rm -rf /run/agentrewind/calls", { timeoutMs: 10_000 }))).toBe("COMMAND_FAILED");
    expect(await says("echo ok")).toBe("ok");
  });

  test("files are read and written as inside, links followed there and none out of the workspace", async () => {
    const { environment, workspace } = machine;
    const text = async (path: string) => Buffer.from(await environment.readFile(path)).toString();
    await exec(
      `cd ${workspace}; mkdir -p d; echo in > d/f; ln -sfn d/f l; ln -sfn ${workspace}/d abs; ln -sfn loop loop`,
    );
    await exec("echo secret > /root/secret; ln -sfn /root/secret x; ln -sfn /root up; chmod 640 d/f; chown 1:2 d/f");
    expect(await text("l")).toBe("in\n");
    expect(await text("abs/f")).toBe("in\n");
    for (const path of ["x", "up/secret", "loop", "../x"]) {
      expect(await codeOf(environment.readFile(path))).toBe("PATH_OUTSIDE");
      expect(await codeOf(environment.writeFile(path, "w"))).toBe("PATH_OUTSIDE");
    }
    expect(await codeOf(environment.list("up"))).toBe("PATH_OUTSIDE");
    expect(await codeOf(environment.readFile("none"))).toBe("NO_FILE");
    await environment.writeFile("l", "through the link\n");
    expect(await says("cat d/f; readlink l; stat -c %a:%u:%g d/f; cat /root/secret")).toBe(
      "through the link\nd/f\n640:1:2\nsecret",
    );
    await environment.writeFile("новое/ファイル 📄", "α");
    expect(await says("cat новое/*")).toBe("α");
    expect(await environment.list("новое")).toEqual([{ name: "ファイル 📄", type: "file" }]);
    const big = Buffer.alloc(50 << 20, "big ");
    await environment.writeFile("big", big);
    expect(Buffer.compare(Buffer.from(await environment.readFile("big")), big)).toBe(0);
    expect(await says("stat -c %s big; rm big")).toBe(`${big.length}`);
  });

  test("nothing of it is seen in the host's folders", async () => {
    mkdirSync(join(machine.workspace, "host"), { recursive: true });
    writeFileSync(join(machine.workspace, "host/f"), "host");
    symlinkSync("f", join(machine.workspace, "host/l"));
    await exec(`cd ${machine.workspace}; echo inside > host/f; echo new > host/new; rm host/l`);
    expect(readFileSync(join(machine.workspace, "host/l"), "utf8")).toBe("host");
    expect(existsSync(join(machine.workspace, "host/new"))).toBe(false);
  });
});
