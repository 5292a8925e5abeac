// Trees in which processes end all the time, also in the middle of a capture or a restore.
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { Held, needed } from "./held.ts";

describe.skipIf(lacking(...needed))("processes that end", () => {
  let held: Held;
  afterEach(() => held.end());

  test("are killed by others: all comes back, every time", async () => {
    held = await Held.open();
    await held.sh(`
      sleep 100000 & SERVICE=$!
      (while :; do timeout -s KILL 0.02 sleep 5; done) >/dev/null 2>&1 &
      (while :; do sleep 5 & P=$!; sleep 0.01; kill -9 $P; wait $P; done) >/dev/null 2>&1 &
      python3 -c 'import time; memory = bytearray(b"x") * (60 << 20); time.sleep(100000)' & sleep 0.5`);
    for (let round = 0; round < 4; round++) {
      const checkpoint = await held.checkpoint();
      expect(checkpoint.problems).toEqual([]);
      expect((await held.back(checkpoint)).notRestored).toEqual([]);
      expect(await held.sh("kill -0 $SERVICE; jobs | grep -c Running")).toBe("4");
    }
  });

  test("all of them, right before a checkpoint: that is no good state without processes", async () => {
    held = await Held.open();
    await held.sh("sleep 100000 &");
    const good = await held.checkpoint();
    for (let round = 0; round < 4; round++) {
      await held.rewind.environment.exec(["bash", "-c", "kill -9 -1"]).catch(() => {});
      const { state, problems } = await held.thread.checkpoint({ context: { messages: [`${round}`] } });
      const isTold =
        state === "not-restorable" || problems.some(({ reason }) => reason.startsWith("all of them had ended"));
      expect([isTold, state, problems]).toEqual([true, state, problems]);
      await held.back(good);
    }
    expect(await held.sh("jobs | grep -c Running")).toBe("1");
  });
});
