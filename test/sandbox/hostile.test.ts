// What root inside can do to what the sandbox is talked to through: links, pipes and folders in the way lead its owner nowhere, and nobody waits for ever.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { codeOf } from "../helpers/workspace.ts";
import { type Machine, needed, openMachine } from "./machine.ts";

describe.skipIf(lacking(...needed, "compiler"))("a hostile root inside", () => {
  /** Of the host, seen inside at the same path. */
  const outside = fs.mkdtempSync("/opt/agentrewind-outside-");
  let machine: Machine;
  beforeAll(() => {
    fs.chmodSync(outside, 0o755);
    fs.mkdirSync(join(outside, "folder"));
  });
  beforeEach(async () => {
    for (const name of ["secret", "victim"]) fs.writeFileSync(join(outside, name), `${name}\n`, { mode: 0o640 });
    fs.rmSync(join(outside, "link"), { force: true });
    fs.symlinkSync(join(outside, "secret"), join(outside, "link"));
    machine = await openMachine({ hide: [join(outside, "link")] });
  });
  afterEach(() => machine.end());
  afterAll(() => fs.rmSync(outside, { recursive: true }));

  const untouched = () => {
    expect(fs.readdirSync(outside).sort()).toEqual(["folder", "link", "secret", "victim"]);
    expect(fs.readdirSync(join(outside, "folder"))).toEqual([]);
    for (const name of ["secret", "victim"]) {
      expect(fs.readFileSync(join(outside, name), "utf8")).toBe(`${name}\n`);
      expect(fs.statSync(join(outside, name)).mode & 0o777).toBe(0o640);
    }
  };
  const back = async (): Promise<void> => {
    const { manifest } = await machine.environment.capture().captured;
    await machine.environment.restore(manifest);
  };
  const own = "d=$(dirname $(readlink /proc/self/fd/1))";

  test("what is hidden is hidden under all its names", async () => {
    expect((await machine.exec(`cat ${outside}/link ${outside}/secret`)).stdout).toBe("");
    untouched();
  });

  test.each([
    ["a link to a file of the host", `rm $d/out; ln -s ${outside}/victim $d/out`],
    ["a pipe", "rm $d/out; mkfifo $d/out"],
    ["a folder", "rm $d/out; mkdir $d/out"],
  ])("%s in the place of a command's output", async (_, line) => {
    const { stdout } = await machine.exec(`${own}; ${line}`, { timeoutMs: 5_000 });
    expect(stdout).toBe("");
    expect(await machine.says("echo goes on")).toBe("goes on");
    untouched();
  });

  test("a pipe in the place of how it ended", async () => {
    const { timedOut } = await machine.exec(["sh", "-c", `${own}; mkfifo $d/done; sleep 5`], { timeoutMs: 500 });
    expect(timedOut).toBe(true);
    untouched();
  });

  test.each([
    ["the folder of commands", `mv calls calls.old; ln -s ${outside}/folder calls`],
    ["the way to start them", `rm control; ln -s ${outside}/victim control`],
    ["the folder of shells", `rm -r shells; ln -s ${outside}/folder shells`],
    ["what shells read", `rm shell; ln -s ${outside}/victim shell`],
    ["the program of the root", `rm program; ln -s ${outside}/victim program`],
    ["all of it", "rm -rf /run/*"],
  ])("links, or nothing, in the place of %s: commands are refused, a rewind goes on", async (_, line) => {
    await machine.exec("v=kept; sleep 301 &");
    const { manifest } = await machine.environment.capture().captured;
    await machine.exec(`cd /run/agentrewind; ${line}`, { timeoutMs: 5_000 }).catch(() => {});
    await machine.exec(["true"], { timeoutMs: 2_000 }).catch((error) => expect(error.code).toBe("COMMAND_FAILED"));
    await machine.environment.capture().captured.catch(() => {});
    untouched();
    await machine.environment.restore(manifest);
    expect(await machine.says("echo $v; jobs -r | wc -l")).toBe("kept\n1");
    untouched();
  });

  test("what was left in the way of the next life is put aside", async () => {
    await machine.end();
    const parent = fs.mkdtempSync("/tmp/agentrewind-parent-");
    machine = await openMachine({ parent });
    await machine.exec(`
      echo 1 > file; mv ${parent} ${parent}.moved; ln -s ${outside}/folder ${parent}
      rm /dev/null; ln -s ${outside}/victim /dev/null; rm -r /dev/mqueue; ln -s ${outside}/folder /dev/mqueue`);
    await machine.exec("exit");
    await back();
    untouched();
    expect(await machine.says("cat file; echo x >/dev/null; stat -c %F /dev/null")).toBe("1\ncharacter special file");
    untouched();
    fs.rmSync(parent, { recursive: true });
  });

  test("a folder that leads to the way of commands is moved: nothing is done elsewhere, and another state comes back", async () => {
    const { manifest } = await machine.environment.capture().captured;
    await machine.exec(`mv /run /run.moved; ln -s ${outside}/folder /run`, { timeoutMs: 3_000 }).catch(() => {});
    await back().catch(() => {});
    await machine.exec(["true"], { timeoutMs: 3_000 }).catch(() => {});
    untouched();
    await machine.environment.restore(manifest);
    expect(await machine.says("echo back")).toBe("back");
    untouched();
  });

  test("a named pipe in the workspace is read by nobody for ever", async () => {
    await machine.says("mkfifo pipe; sleep 300 >pipe & true");
    await Promise.race([machine.environment.readFile("pipe").catch(() => {}), sleep(5_000)]);
    expect(await codeOf(machine.environment.readFile("nothing"))).toBe("NO_FILE");
  });

  test("its libraries are not loaded into what captures it", async () => {
    const source = `
      #include <stdio.h>
      #include <unistd.h>
      __attribute__((constructor)) static void begin(void) {
        char name[64]; snprintf(name, sizeof name, "/tmp/loaded/%d", getpid());
        FILE *file = fopen(name, "w"); FILE *status = fopen("/proc/self/status", "r"); char line[256];
        while (file && status && fgets(line, sizeof line, status)) fputs(line, file);
        if (file) fclose(file);
      }`;
    const place = fs.mkdtempSync("/opt/agentrewind-library-");
    fs.writeFileSync(join(place, "l.c"), source);
    execFileSync("cc", ["-shared", "-fPIC", "-o", join(place, "l.so"), join(place, "l.c")]);
    try {
      await machine.says(
        `mkdir -m 777 /tmp/loaded; cp ${place}/l.so /usr/lib/l.so; echo /usr/lib/l.so > /etc/ld.so.preload`,
      );
      await machine.exec("sleep 300 &");
      await back();
      const loaded = await machine.says("cat /tmp/loaded/* | sed -n 's/^CapEff:.0*//p' | sort -u");
      expect(loaded).toBe("a00425fb");
    } finally {
      fs.rmSync(place, { recursive: true });
    }
  });
});
