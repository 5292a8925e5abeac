// What adapters keep beside the checkpoints.
import * as fs from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { endSession, makePlace, useRewind } from "./helpers/workspace.ts";

test("F-40: values survive a rewind and gc, and go with their checkpoint", async () => {
  const place = makePlace();
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  const write = (text: string): void => fs.writeFileSync(join(place.workspace, "a.txt"), text);
  write("0");
  await thread.checkpoint();
  await thread.journal.put({ first: { at: "c0" }, both: 1 });
  write("1");
  await thread.checkpoint();
  await thread.journal.put({ second: "c1", both: 2 });
  await thread.rewind({ to: "c0" });
  await rewind.gc();
  expect(thread.journal.get("first")).toEqual({ at: "c0" });
  expect(thread.journal.get("second")).toBe("c1");
  expect(thread.journal.get("both")).toBe(2);
  expect(thread.journal.get("none")).toBeUndefined();
  for (const text of ["2", "3", "4"]) {
    write(text);
    await thread.checkpoint();
    await thread.journal.put({ [`at ${text}`]: text });
  }
  await rewind.prune({ keepLast: 1 });
  expect(thread.journal.get("at 2")).toBeUndefined();
  expect(thread.journal.get("at 4")).toBe("4");
  await endSession(rewind);
});

test("a value that is not JSON is refused, and nothing of the same call is kept", async () => {
  const place = makePlace();
  const rewind = await useRewind(place);
  const thread = rewind.thread("t");
  await thread.checkpoint();
  await expect(thread.journal.put({ good: 1, bad: 1n })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  expect(thread.journal.get("good")).toBeUndefined();
  await endSession(rewind);
});
