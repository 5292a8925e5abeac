// Which turns leave the processes of a sandbox as they were: what a later command can see decides, not the bytes of a shell that ran.
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Captured, Manifest } from "../../src/index.ts";
import { lacking } from "../capabilities.ts";
import { type Machine, needed, openMachine } from "./machine.ts";

const lacks = lacking(...needed);

describe.skipIf(lacks)("waiting shells", () => {
  let machine: Machine;
  const ended: (() => unknown)[] = [];
  const begin = async (options = {}): Promise<void> => {
    machine = await openMachine(options);
    ended.push(machine.end);
  };
  const end = async (): Promise<void> => {
    for (const one of ended.splice(0)) await one();
  };
  const capture = (): Promise<Captured> => machine.environment.capture().captured;
  const captured = async (): Promise<Manifest> => (await capture()).manifest;
  /** Which halves changed over a command. */
  const changes = async (command: string | readonly string[]): Promise<string> => {
    const before = await captured();
    await machine.exec(command);
    const after = await captured();
    const [files, processes] = [before.files !== after.files, before.processes !== after.processes];
    return files && processes ? "both" : files ? "files" : processes ? "processes" : "none";
  };
  /** Everything that a shell can be asked; its own commands, in a shell that goes. */
  const battery =
    "(declare -p; declare -f; declare -F; alias; shopt; set +o; trap; umask; dirs; ulimit -a; pwd -P; echo \"$*\") | grep -vE '^declare -\\S+ (BASHPID|BASH_ARGV|BASH_SOURCE|BASH_LINENO|BASH_SUBSHELL|BASH_CMDS|EPOCH|HISTCMD|LINENO|PIPESTATUS|RANDOM|SECONDS|SRANDOM|_=|__agentrewind)'; ls -l /proc/$$/fd | grep -v call";
  const told = async (): Promise<string> => (await machine.exec(battery)).stdout;

  afterAll(end);

  describe("one machine", () => {
    beforeEach(async () => {
      if (machine === undefined || ended.length === 0) await begin();
      await machine.exec("true");
    });

    test.each([
      ["export COLUMNS=80", "export COLUMNS=200"],
      ["unset RANDOM; RANDOM=one", "RANDOM=two"],
      ["true", "taskset -pc 0 $$ >/dev/null"],
      ["exec 3</etc/passwd; exec 4<&3", "exec 4</etc/passwd"],
    ])("%s, then %s: the processes", async (before, command) => {
      await machine.exec(before);
      expect(await changes(command)).toMatch(/^(processes|both)$/);
      await machine.exec("exec 3<&- 4<&-; unset COLUMNS; exit");
    });

    test.each([
      "ls -la /",
      "cat /etc/passwd >/dev/null",
      "false",
      "nosuchprogram",
      "if then",
      "for i in 1 2 3; do echo $RANDOM; done >/dev/null; unset i",
      "sleep 0.05 & wait $!",
      "(cd /tmp; v=1; umask 0; ulimit -n 10)",
      "bash -c 'exit 3'",
      "grep root /etc/passwd | wc -l",
      'echo "$(date)" "$SECONDS"',
    ])("%s: none", async (command) => {
      await machine.exec(command);
      // Of a job in the background the shell keeps the number.
      if (command.includes("$!")) return expect(await changes(command)).not.toBe("none");
      expect(await changes(command)).toBe("none");
    });

    test("a program of its own: none", async () => {
      expect(await changes(["ls", "/"])).toBe("none");
      expect(await changes(["false"])).toBe("none");
    });

    test.each([
      ["a folder", "cd /usr"],
      ["the folder before that", "cd /; cd /usr"],
      ["a variable", "v=1"],
      ["one whose value looks like another", "v=$'1\\ndeclare -i SECONDS=\"3\"'"],
      ["its value there", "v=$'1\\ndeclare -i SECONDS=\"4\"'"],
      ["quotes", "v='\"'"],
      ["an exported one", "export v"],
      ["one that goes", "unset v"],
      ["an array", "a=(1 '2 3')"],
      ["a map", "declare -A m=([x]=1)"],
      ["a function", "f() { echo; }"],
      ["what it does", "f() { echo 2; }"],
      ["an exported function", "export -f f"],
      ["an alias", "alias l=ls"],
      ["an option", "set -u"],
      ["another one", "set +u; shopt -s extglob"],
      ["a mask", "umask 077"],
      ["a limit", "ulimit -Sn 512"],
      ["how it is scheduled", "renice -n 5 $$ >/dev/null"],
      ["a descriptor", "exec 7</etc/passwd"],
      ["where it is", "read -u 7 -n 5 x; unset x"],
      ["its end", "exec 7<&-"],
      ["arguments", "set -- 1 2"],
      ["folders on the stack", "pushd /tmp >/dev/null"],
      ["where a command is", "hash -p /bin/false ls"],
      ["a trap", "trap 'echo' USR1"],
      ["no trap any more", "trap - USR1"],
      ["a job", "sleep 300 & disown"],
      ["its end", "kill %1 $!; wait; pkill sleep; sleep 0.1"],
      ["shared memory", "python3 -c 'import ctypes; ctypes.CDLL(None).shmget(5, 100, 0o1600)'"],
      ["a shell's end", "exit 3"],
    ])("%s is a change", async (_, command) => {
      expect(["processes", "both"]).toContain(await changes(command));
    });
  });

  describe("a machine each", () => {
    beforeEach(() => begin());
    afterEach(end);

    test("files alone: the image stays, and each pair comes back", async () => {
      await machine.exec("cd /tmp; v=1");
      const first = await captured();
      await machine.exec("echo one > /root/file; echo 1 > here");
      const second = await captured();
      expect(second.processes).toBe(first.processes);
      expect(second.files).not.toBe(first.files);
      await machine.exec("rm /root/file; v=2; cd /");
      const third = await captured();
      expect(third.processes).not.toBe(first.processes);

      await machine.environment.restore(second);
      expect(await machine.says("echo $v $(</root/file) $PWD; cat here")).toBe("1 one /tmp\n1");
      await machine.environment.restore(first);
      expect(await machine.says("echo $v $PWD; ls /root/file here 2>/dev/null || echo none")).toBe("1 /tmp\nnone");
      await machine.environment.restore(third);
      expect(await machine.says("echo $v $PWD")).toBe("2 /");
    });

    test("behind a restore, and in the owner that comes after, nothing has changed", async () => {
      await machine.exec("export v=1; cd /usr; f() { :; }");
      const first = await captured();
      await machine.exec("v=2");
      await captured();
      await machine.environment.restore(first);
      expect(await captured()).toEqual(first);
      await machine.exec("ls");
      expect(await captured()).toEqual(first);
      await machine.reopen();
      await machine.exec("ls");
      expect((await captured()).processes).toBe(first.processes);
      expect(await machine.says("echo $v; declare -f f; pwd")).toBe("1\nf () \n{ \n    :\n}\n/usr");
    });

    test("what a shell stands in, or has open, is another one: another image", async () => {
      await machine.exec("mkdir /tmp/in; cd /tmp/in; exec 7<>/tmp/open");
      const first = await captured();
      expect(await changes(["bash", "-c", "touch /tmp/in/file"])).toBe("files");
      expect(await changes(["bash", "-c", "rm -r /tmp/in; mkdir /tmp/in"])).toBe("both");
      expect(await changes(["bash", "-c", "echo more >> /tmp/open"])).toBe("both");
      expect(await changes(["bash", "-c", "mv /tmp/open /tmp/else"])).toBe("both");
      await machine.environment.restore(first);
      expect(await machine.says("pwd -P; readlink /proc/$$/fd/7; cat <&7")).toBe("/tmp/in\n/tmp/open");
    });

    test("what lies in a pipe, or in a file without a name, that a shell has open is not judged", async () => {
      await machine.exec("mkfifo /tmp/pipe; exec 5<>/tmp/pipe");
      await captured();
      await machine.exec(["bash", "-c", "echo one > /tmp/pipe"]);
      const one = await captured();
      await machine.exec(["bash", "-c", "echo two > /tmp/pipe"]);
      await captured();
      await machine.environment.restore(one);
      expect(await machine.says("read -t 1 -u 5 a; read -t 0.2 -u 5 b; echo $a $b; exec 5<&-")).toBe("one");

      await machine.exec("echo old > /tmp/gone; exec 6<>/tmp/gone; rm /tmp/gone");
      const old = await captured();
      await machine.exec("python3 -c 'import os; os.pwrite(6, b\"new\", 0)'");
      expect((await captured()).processes).not.toBe(old.processes);
      await machine.environment.restore(old);
      expect(await machine.says("cat <&6")).toBe("old");
    });

    test("what runs by itself in a shell, or beside it, is not judged", async () => {
      await machine.exec("PROMPT_COMMAND='n=$((n+1))'");
      const one = await captured();
      await machine.exec("true");
      const two = await captured();
      expect(two.processes).not.toBe(one.processes);
      await machine.environment.restore(one);
      expect(Number(await machine.says("echo $n"))).toBeGreaterThan(0);
      await machine.exec("unset PROMPT_COMMAND n; trap 'm=1' CHLD");
      expect(await changes("true")).toBe("processes");
    });

    test("shared memory without any process comes back as well", async () => {
      const first = await captured();
      expect(first.processes).toBeNull();
      await machine.exec(["python3", "-c", "import ctypes; ctypes.CDLL(None).shmget(5, 100, 0o1600)"]);
      const second = await captured();
      expect(second.processes).not.toBeNull();
      await machine.environment.restore(first);
      expect(await machine.says("tail -n +2 /proc/sysvipc/shm | wc -l")).toBe("0");
      await machine.environment.restore(second);
      expect(await machine.says("tail -n +2 /proc/sysvipc/shm | wc -l")).toBe("1");
    });

    test("what is taken for unchanged comes back as it was, to everything that can be asked", async () => {
      await machine.exec(
        "cd /var; v=(1 2); declare -A m=([a]=b); f() { echo; }; alias l=ls; umask 027; exec 8</etc/passwd",
      );
      await captured();
      await machine.exec("ls; read -u 8 line; unset line");
      await machine.exec("true");
      const before = await captured();
      const said = await told();
      for (const command of ["ls", "false", "echo $v", "cat /etc/group"]) await machine.exec(command);
      expect(await captured()).toEqual(before);
      await machine.exec("cd /; unset v m f; unalias l; umask 0; exec 8<&-");
      await captured();
      await machine.environment.restore(before);
      expect(await told()).toBe(said);
    });

    test("a command that runs, or that was ended, is not judged", async () => {
      await machine.exec("v=1");
      const first = await captured();
      const running = machine.exec("sleep 0.5; w=2");
      await expect.poll(async () => (await machine.exec(["pgrep", "sleep"])).exitCode).toBe(0);
      const middle = await captured();
      expect(middle.processes).not.toBe(first.processes);
      await running;
      expect((await machine.exec("sleep 100", { timeoutMs: 100 })).timedOut).toBe(true);
      const behind = await captured();
      await machine.environment.restore(behind);
      expect(await machine.says("echo $v $w")).toBe("1 2");
    });
  });

  test('with `inspector: "scan"` all of the memory decides', async () => {
    await end();
    await begin({ inspector: "scan" });
    await machine.exec("true");
    expect(["processes", "both"]).toContain(await changes("ls"));
    expect((await captured()).processes).toBe((await captured()).processes);
    await end();
  });
});
