// What the gate of a turn costs and sees in a sandbox whose processes never rest.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { Held, needed } from "./held.ts";

const counter = `python3 -c '
import time
n = 0
while True:
    n += 1
    time.sleep(0.001)
' >/dev/null 2>&1 </dev/null & until grep -q python /proc/$!/comm; do sleep 0.01; done; echo $!`;

describe.skipIf(lacking(...needed))("the gate of a turn", () => {
  let held: Held;
  afterEach(() => held.end());

  const images = (): string[] => {
    const folder = join(held.base, "store", "images");
    return readdirSync(folder).flatMap((id) => readdirSync(join(folder, id)));
  };
  /** Resolves when the process was scheduled again. */
  const hasRunOn = async (pid: string): Promise<void> => {
    const [inside] = /^\/proc\/\d+\/root/.exec(held.rewind.environment.path("") ?? "") ?? [];
    const switches = (): string | undefined =>
      /^voluntary_ctxt_switches.*$/m.exec(readFileSync(`${inside}/proc/${pid}/status`, "utf8"))?.[0];
    for (const before = switches(); switches() === before; ) await nextTurn();
  };
  const context = (name: string) => ({ messages: [name] });

  test.each(["auto", "scan"] as const)(
    "does not dump once more what runs all the time (%s), and a rewind brings the pair of the turn back",
    async (inspector) => {
      held = await Held.open({ network: "own" }, [], inspector);
      const pid = await held.sh(counter);
      const turn = await held.thread.beginTurn(context("m0"), { anchor: "m0" });
      await turn.captured;
      const dumped = images();
      await hasRunOn(pid);
      const { id, environment } = await turn.gate({ tools: true });
      expect(dumped).toContain(environment.processes);
      expect(images()).toEqual(dumped);
      await held.sh("echo made > /root/made");
      expect((await held.thread.rewind({ to: id })).notRestored).toEqual([]);
      expect(await held.sh("[ ! -e /root/made ] && kill -0 $! && echo there")).toBe("there");
    },
  );

  test("sees what somebody wrote while the model thought, beside processes that run", async () => {
    held = await Held.open();
    await held.sh(counter);
    await (await held.thread.beginTurn(context("m0"), { anchor: "m0" })).gate({ tools: true });
    const turn = await held.thread.beginTurn(context("m1"), { anchor: "m1" });
    await turn.captured;
    await held.rewind.environment.writeFile("note.txt", "a person's\n");
    await turn.gate({ tools: true });
    await held.sh("echo of-the-agent > agent.txt");
    const { external } = await held.thread.rewind({ to: "c0", external: "keep" });
    expect(external).toEqual(["note.txt"]);
    expect(await held.sh("ls")).toBe("note.txt");
  });
});
