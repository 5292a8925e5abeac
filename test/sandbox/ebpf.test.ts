// `inspector: "ebpf"` as its users have it: turns in which nothing happened share what was captured, and a rewind to them is exact.
import { execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdirSync, mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind } from "agentrewind";
import { describe, expect, onTestFinished, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { pythonPath } from "../helpers/python.ts";
import { Held, needed, until } from "./held.ts";

const folder = (): string => {
  const base = mkdtempSync(join(tmpdir(), "agentrewind-ebpf-"));
  onTestFinished(() => void execFileSync("rm", ["-rf", base]));
  mkdirSync(join(base, "workspace"));
  return base;
};

test("it is for sandboxes", async () => {
  const base = folder();
  const options = { workspace: join(base, "workspace"), store: join(base, "store"), inspector: "ebpf" } as const;
  const refused = openRewind(options);
  await expect(refused).rejects.toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
});

describe.skipIf(lacking(...needed, "ebpf"))("turns with the kernel's counters", () => {
  test("a turn without any work has the halves of the one before, whatever runs idly, and can be returned to", async () => {
    const held = await Held.open({ network: "own" }, [], "ebpf");
    const skipped: unknown[] = [];
    const onSkip = (message: unknown): void => void skipped.push(message);
    subscribe("agentrewind:skip", onSkip);
    onTestFinished(() => void unsubscribe("agentrewind:skip", onSkip));
    try {
      await held.sh("v=1; echo one >file; sleep 1000 & disown");
      const turn = async (text: string) => {
        const begun = await held.thread.beginTurn({ messages: [{ role: "user", content: text }] });
        return begun.gate();
      };
      let first = await turn("first");
      let quiet = await turn("second");
      // What was just started comes to rest.
      await until(async () => {
        [first, quiet] = [quiet, await turn("again")];
        return quiet.environment.processes === first.environment.processes;
      });
      expect(quiet.environment).toEqual(first.environment);
      expect(Object.values(quiet.changes ?? {}).flat()).toEqual([]);
      expect(skipped.at(-1)).toEqual({ thread: "t1", checkpoint: quiet.id, reason: "unchanged" });
      await held.sh("v=2; echo two >file; pkill sleep");
      const after = await turn("third");
      expect(after.environment.files).not.toBe(quiet.environment.files);
      expect(after.environment.processes).not.toBe(quiet.environment.processes);
      await held.back(quiet);
      expect(await held.sh("echo $v $(cat file) $(pgrep -c sleep)")).toBe("1 one 1");
    } finally {
      await held.end();
    }
  });

  test("two sandboxes of one process are told apart, and the first one closed takes nothing from the other", async () => {
    const [one, other] = [
      await Held.open({ network: "own" }, [], "ebpf"),
      await Held.open({ network: "own" }, [], "ebpf"),
    ];
    try {
      const capture = async (held: Held) => (await held.rewind.environment.capture().captured).manifest;
      for (const held of [one, other]) await held.sh("true");
      const [first, second] = [await capture(one), await capture(other)];
      await one.sh("true");
      expect(await one.rewind.environment.changed?.(first)).toBe("unknown");
      await until(async () => (await other.rewind.environment.changed?.(second)) === "none");
      await one.end();
      expect(await other.rewind.environment.changed?.(second)).toBe("none");
      await other.sh("true");
      expect(await other.rewind.environment.changed?.(second)).toBe("unknown");
    } finally {
      await other.end();
    }
  });

  test("places to which commands connected are named by a rewind, or not left behind", async () => {
    const server = createServer((socket) => socket.on("error", () => {}).end("hello"));
    await new Promise<void>((done) => server.listen(0, "0.0.0.0", done));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const base = folder();
    const open = (network: "note" | "hold") =>
      openRewind({
        workspace: join(base, "workspace"),
        store: join(base, "store"),
        environment: "sandbox",
        inspector: "ebpf",
        effects: { network },
      });
    let rewind = await open("note");
    const turn = async () => (await rewind.thread("t1").beginTurn({ messages: ["go on"] })).gate();
    const sh = (line: string) => rewind.environment.exec(line);
    const first = await turn();
    await sh(`exec 9<>/dev/tcp/127.0.0.1/${port}; cat <&9; exec 9<&-`);
    // To itself it makes no connection to elsewhere.
    await sh(
      `${pythonPath()} -ISc 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); s.listen(); socket.create_connection(s.getsockname()); open("/dev/shm/own","w").write(str(s.getsockname()[1])); import time; time.sleep(1000)' >/dev/null 2>&1 & disown; until [ -s /dev/shm/own ]; do sleep 0.01; done`,
    );
    const second = await turn();
    expect(second.effects).toEqual([]);
    expect(first.id).toBe("c0");
    const planned = await rewind.thread("t1").rewind({ to: "c0", dryRun: true });
    expect(planned.contacted).toEqual([`127.0.0.1:${port}`]);
    const done = await rewind.thread("t1").rewind({ to: "c0" });
    expect(done.contacted).toEqual([`127.0.0.1:${port}`]);
    expect(done.message).toContain(
      `Connected to from there; what was done there is not taken back:\n- 127.0.0.1:${port}`,
    );
    expect(done.effects).toEqual([]);
    await turn();
    await rewind.close();
    // This machine by its other name.
    const address = Object.values(networkInterfaces())
      .flat()
      .find((one) => one?.family === "IPv4" && !one.internal)?.address;
    rewind = await open("hold");
    await sh(`exec 9<>/dev/tcp/127.0.0.1/${port}; exec 9<&-`);
    await rewind.thread("t1").rewind({ to: "c0" });
    if (address !== undefined) {
      await turn();
      await sh(`exec 9<>/dev/tcp/${address}/${port}; exec 9<&-`);
      await expect(rewind.thread("t1").rewind({ to: "c0" })).rejects.toThrow(
        expect.objectContaining({
          code: "EFFECT_CROSSED",
          message: expect.stringContaining(`connected to ${address}:${port}`),
        }),
      );
      await rewind.thread("t1").rewind({ to: "c0", crossEffects: true });
    }
    await rewind.close();
  });

  test("where nobody sees connections, nothing can be said of them", async () => {
    const base = folder();
    const options = {
      workspace: join(base, "workspace"),
      store: join(base, "store"),
      effects: { network: "note" },
    } as const;
    await expect(openRewind(options)).rejects.toThrow(expect.objectContaining({ code: "NOT_AVAILABLE" }));
    const wrong = openRewind({ ...options, effects: { mail: "note" } });
    await expect(wrong).rejects.toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
  });
});
