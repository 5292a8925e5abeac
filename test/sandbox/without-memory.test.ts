// Processes whose memory is not kept: without CRIU, where CRIU refuses, and where nobody wants it. Each is started again or stopped, and named.
import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { SandboxOptions } from "../../src/environment/sandbox/options.ts";
import { lacking } from "../capabilities.ts";
import { Held, needed, talk, until } from "./held.ts";

/** Counts its connections, and says where and as what it runs. */
const service = `
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
path = os.path.join(os.environ["PLACE"], sys.argv[1])
if os.path.exists(path): os.unlink(path)
server.bind(path)
server.listen()
print("began", flush=True)
n = 0
while True:
    asker, _ = server.accept()
    n += 1
    mask = os.umask(0)
    os.umask(mask)
    asker.sendall(f"{n} {os.getcwd()} {os.getuid()} {os.environ.get('HELD_TINT')} {mask}".encode())
    asker.close()
`;

/** What CRIU refuses: a socket whose relative name has changed. */
const refused = `
import os, socket, time
server = socket.socket(socket.AF_UNIX)
server.bind("first")
os.rename("first", "second")
open("ready", "w").close()
time.sleep(100000)
`;

describe.skipIf(lacking(...needed))("processes without their memory", () => {
  let held: Held;
  const open = async (sandbox: SandboxOptions, criu?: "off"): Promise<void> => {
    if (criu !== undefined) process.env.AGENTREWIND_CRIU = criu;
    held = await Held.open({ network: "own", ...sandbox });
    writeFileSync(held.path("service.py"), service);
    await held.sh("mkdir -p sub; chmod 777 . sub; export PLACE=$PWD");
  };
  afterEach(async () => {
    delete process.env.AGENTREWIND_CRIU;
    await held.end();
  });

  const start = async (name: string, how = "", out = `${name}.log`): Promise<void> => {
    await held.sh(`${how} python3 "$PLACE/service.py" ${name} >>${out} 2>&1 & :`);
    await until(() => answer(name).then((text) => text !== ""));
  };
  const answer = (name: string): Promise<string> => talk(held.path(name), "").catch(() => "");
  const fates = (problems: readonly { path: string; reason: string }[]): string[] =>
    problems.map(({ path, reason }) => `${path.replace(/process \d+ /, "")}: ${reason}`).sort();

  test("without CRIU they are started again with what they were started with", async () => {
    await open({}, "off");
    await start("plain");
    await held.sh("cd sub; umask 027; export HELD_TINT=red");
    await start("tuned", "", "../tuned.log");
    await held.sh(
      "setpriv --reuid=65534 --regid=65533 --clear-groups sleep 100002 & until pgrep -xf 'sleep 100002'; do :; done",
    );
    await held.sh("cd ..; umask 022; (while :; do sleep 1000; done) & sleep 100000 | cat & sleep 0.05 & wait $!");
    const checkpoint = await held.checkpoint();
    expect(checkpoint.environment.processes).not.toBeNull();
    expect(fates(checkpoint.problems)).toContain(
      "(python3): CRIU is switched off (AGENTREWIND_CRIU=off): a rewind starts it again, without its memory",
    );
    expect((await held.checkpoint()).environment).toEqual(checkpoint.environment);
    await held.sh("kill %1 %2 %3; rm -rf sub");

    const { notRestored, message } = await held.back(checkpoint);
    const lost = "stopped: its variables, functions and jobs are gone, the next command gets a new one";
    expect(fates(notRestored)).toEqual([
      "(bash): stopped: it was a part of a shell, whose program was in its memory only",
      `(bash): ${lost}`,
      "(cat): stopped: it was connected to another process",
      "(python3): relaunched: its memory is not what it was",
      "(python3): relaunched: its memory is not what it was",
      "(sleep): relaunched: its memory is not what it was",
      "(sleep): relaunched: its memory is not what it was",
      "(sleep): stopped: it was connected to another process",
    ]);
    expect(message).toContain("Running programs do not have their memory of then");
    expect(message).not.toContain("start again what you need");
    expect(message).toContain("(python3) (relaunched: its memory is not what it was)");
    await until(async () => (await answer("plain")) !== "" && (await answer("tuned")) !== "");
    expect(await answer("plain")).toMatch(/^\d+ \S+\/workspace 0 None 18$/);
    expect(await answer("tuned"), readFileSync(held.path("tuned.log"), "utf8")).toMatch(
      /^\d+ \S+\/workspace\/sub 0 red 23$/,
    );
    expect(await held.sh("stat -c '%u %g' /proc/$(pgrep -xf 'sleep 100002')")).toBe("65534 65533");
    expect(readFileSync(held.path("plain.log"), "utf8")).toBe("began\nbegan\n");
  });

  test("where CRIU refuses one, the files count all the same, and all are started again", async () => {
    await open({});
    await start("plain");
    writeFileSync(held.path("refused.py"), refused);
    await held.sh("python3 refused.py & until [ -e ready ]; do sleep 0.01; done; echo kept >file");
    const checkpoint = await held.checkpoint();
    expect(checkpoint.state).not.toBe("not-restorable");
    expect(checkpoint.problems[0]).toEqual({
      path: expect.stringMatching(/^process \d+ \(python3.*\)$/),
      reason: "its Unix socket was bound as first, and renamed",
    });
    await held.sh("echo other >file; kill %1 %2");
    const { notRestored } = await held.back(checkpoint);
    expect(fates(notRestored).filter((one) => one.includes("relaunched"))).toHaveLength(2);
    expect(readFileSync(held.path("file"), "utf8")).toBe("kept\n");
    await until(async () => (await answer("plain")) !== "");
  });

  test("a process whose first thread has ended is named, and started again", async () => {
    await open({});
    await held.sh(`
      echo 'import ctypes, threading, time; threading.Thread(target=time.sleep, args=(100000,)).start(); ctypes.CDLL(None).pthread_exit(0)' >rest.py
      python3 rest.py & until grep -q '^State:.Z' /proc/$!/status; do sleep 0.01; done`);
    const { problems, environment } = await held.checkpoint();
    expect(fates(problems)).toContainEqual(expect.stringMatching(/^\(python3\): .*a rewind starts it again/));
    expect(environment.processes).not.toBeNull();
  });

  test("what ends at once when it is started again is named", async () => {
    await open({ processes: "relaunch" });
    await held.sh("echo 'touch began; sleep 100000' >script; sh script & until [ -e began ]; do :; done; rm script");
    const { notRestored } = await held.back(await held.checkpoint());
    expect(fates(notRestored)).toContainEqual(
      expect.stringMatching(/^\(sh\): it was started again, and ended at once \(exit status \d+\)$/),
    );
  });

  test("with `stop` they are ended and named", async () => {
    await open({ processes: "stop" });
    await start("plain");
    const checkpoint = await held.checkpoint();
    expect(fates(checkpoint.problems)).toContain("(python3): its memory is not kept: a rewind does not bring it back");
    const { notRestored } = await held.back(checkpoint);
    expect(fates(notRestored)).toContain("(python3): stopped: processes are not kept");
    expect(await held.sh("pgrep -c python3 || true")).toBe("0");
  });

  test("an image that CRIU does not take any more: they are started again, and named with the reason", async () => {
    await open({});
    await start("plain");
    const checkpoint = await held.checkpoint();
    const images = join(held.base, "store", "images");
    const folder = join(images, readdirSync(images)[0] as string, checkpoint.environment.processes as string);
    for (const name of readdirSync(folder).filter((one) => one.startsWith("core-")))
      truncateSync(join(folder, name), 10);
    const { notRestored } = await held.back(checkpoint);
    expect(notRestored.map(({ reason }) => reason)).toContainEqual(expect.stringMatching(/^CRIU /));
    expect(fates(notRestored)).toContain("(python3): relaunched: its memory is not what it was");
    await until(async () => (await answer("plain")) !== "");
  });

  test("what was started again at an opening is named by the next checkpoint", async () => {
    await open({ processes: "relaunch" });
    await start("plain");
    await held.rewind.close();
    held = await held.again({ network: "own", processes: "relaunch" });
    expect(fates((await held.checkpoint()).problems)).toContain("(python3): relaunched: its memory is not what it was");
    await until(async () => (await answer("plain")) !== "");
  });

  test("`restore` is refused where it cannot be", async () => {
    await open({});
    process.env.AGENTREWIND_CRIU = "off";
    await expect(Held.open({ network: "own", processes: "restore" })).rejects.toMatchObject({ code: "NOT_AVAILABLE" });
  });
});
