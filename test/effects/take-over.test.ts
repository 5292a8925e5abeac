// Two processes and one effect: the first is killed, stopped or gives the workspace up in the middle of it, and goes on later.
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { done, runWorld, type Started, startWorld } from "./world.ts";

const mail = { op: "call", tool: "send_mail", args: { to: "ann" }, callId: "m1/call-1" } as const;
const pay = { op: "call", tool: "send_mail", args: { to: "bob" }, callId: "m2/call-1" } as const;

/** A process in the middle of sending a mail; it goes on when the file `go` is there. */
async function sending(
  place: Place,
  how: "call" | "callAndClose" = "call",
  rest: object[] = [],
): Promise<Started & { go(): void }> {
  const until = join(place.base, "go");
  const steps = [{ op: "open" }, { op: "turn", messages: ["m0"] }, { ...mail, op: how, until }, ...rest];
  const started = startWorld(place, steps as never);
  await started.next("turn");
  await started.next("acted");
  return { ...started, go: () => writeFileSync(until, "") };
}

test("F-26, F-44: the first is killed in the middle of it: the second is told, and it is done once", async () => {
  const place = makePlace();
  const first = await sending(place);
  first.child.kill("SIGKILL");
  await first.ended;
  const { results } = runWorld(place, [{ op: "open" }, mail, { ...mail, callId: "m9/other" }, { op: "effects" }]);
  const [, same, equivalent, effects] = results.map((one) => one.ok);
  for (const held of [same, equivalent]) {
    expect(held.status).toBe("held");
    expect(held.message).toMatch(/not known whether this is done already.*mail to ann was begun at c0/);
  }
  expect(effects).toMatchObject([{ state: "unknown", description: "mail to ann", checkpoint: "c0" }]);
  expect(done(place)).toEqual(["mail ann"]);
});

test("F-41: the first is stopped in the middle of it: the second takes over, and what the first does later is refused by the store", async () => {
  const place = makePlace();
  const first = await sending(place, "call", [
    pay,
    { op: "turn", messages: ["m0", "m1"] },
    { op: "rewind", to: "c0" },
    { op: "rewind", to: "c0" },
    { op: "effects" },
    { op: "close" },
  ]);
  first.child.kill("SIGSTOP");

  expect(runWorld(place, [{ op: "open" }]).results[0]?.error).toBe("ENVIRONMENT_BUSY");
  const second = startWorld(place, [
    { op: "open", takeOver: true },
    mail,
    { op: "turn", messages: ["m0", "m1", "m2"] },
    { ...mail, args: { to: "eve" }, callId: "m3/call-1", until: join(place.base, "end") },
    { op: "verify" },
    { op: "effects" },
  ] as never);
  expect((await second.next("open")).error).toBeUndefined();
  expect((await second.next("call")).ok).toMatchObject({ status: "held" });
  expect((await second.next("turn")).ok).toBe("c1");
  await second.next("acted");

  writeFileSync(join(place.workspace, "kept"), "the second's");
  // The second is in the middle of an effect of its own when the first wakes up.
  first.go();
  first.child.kill("SIGCONT");
  const late = await first.next("call");
  expect(late).toMatchObject({
    error: "HOLDER_CHANGED",
    message: expect.stringContaining("mail to ann was done, but that could not be recorded"),
  });
  expect(await first.next("call"), "its next effect").toMatchObject({ error: "HOLDER_CHANGED" });
  expect(await first.next("turn"), "its next turn").toMatchObject({ error: "HOLDER_CHANGED" });
  expect(await first.next("rewind"), "its next rewind").toMatchObject({ error: "HOLDER_CHANGED" });
  expect(readdirSync(place.workspace)).toEqual(["kept"]);
  await first.next("close");
  await first.ended;

  const sockets = readdirSync(join(place.store, "locks")).filter((name) => name.endsWith(".sock"));
  expect(sockets, "the second is still reached").toHaveLength(1);
  writeFileSync(join(place.base, "end"), "");
  expect((await second.next("call")).ok).toMatchObject({ status: "ran", state: "completed" });
  expect((await second.next("verify")).ok).toEqual([]);
  expect(
    (await second.next("effects")).ok.map((one: { description: string; state: string }) => [
      one.description,
      one.state,
    ]),
  ).toEqual([
    ["mail to ann", "unknown"],
    ["mail to eve", "completed"],
  ]);
  await second.ended;
  expect(done(place), "each once, and nothing by the first after it was replaced").toEqual(["mail ann", "mail eve"]);
  await useRewind(place);
});

test("F-41: of several that take over at once one wins", async () => {
  const place = makePlace();
  const first = await sending(place);
  first.child.kill("SIGSTOP");
  const until = join(place.base, "end");
  const others = [1, 2, 3].map(() =>
    startWorld(place, [
      { op: "open", takeOver: true },
      { op: "turn", messages: ["m0", "m1"] },
      { op: "call", tool: "ping", args: {}, until },
    ] as never),
  );
  const opened = await Promise.all(others.map((one) => one.next("open")));
  expect(opened.map(({ error }) => error ?? "won").sort()).toEqual(["ENVIRONMENT_BUSY", "ENVIRONMENT_BUSY", "won"]);
  const winner = others[opened.findIndex(({ error }) => error === undefined)];
  expect((await winner?.next("turn"))?.ok, "nobody has replaced it").toBe("c1");
});

test("the first gave the workspace up while its tool ran: its completion is refused, and the second does not repeat it", async () => {
  const place = makePlace();
  const first = await sending(place, "callAndClose");
  await first.next("closed");
  first.child.kill("SIGSTOP");
  const { results } = runWorld(place, [{ op: "open" }, mail, { op: "turn", messages: ["m0", "m1"] }]);
  expect(results[1]?.ok).toMatchObject({ status: "held" });
  first.go();
  first.child.kill("SIGCONT");
  expect(await first.next("callAndClose")).toMatchObject({ error: "CLOSED" });
  await first.ended;
  const rewind = await useRewind(place);
  expect(rewind.thread("t").effects()).toMatchObject([{ state: "unknown" }]);
  expect(done(place)).toEqual(["mail ann"]);
});

test("F-41: a holder that answers, and one that is in the middle of a rewind, are not replaced", async () => {
  const place = makePlace();
  const alive = await sending(place);
  const refused = runWorld(place, [{ op: "open", takeOver: true }]).results[0];
  expect(refused).toMatchObject({ error: "ENVIRONMENT_BUSY", message: expect.stringContaining("answers") });
  alive.go();
  await alive.ended;

  const busy = startWorld(place, [
    { op: "open" },
    { op: "turn", messages: ["m0"] },
    { op: "rewind", to: "c0", verify: `touch ${place.base}/checking; while [ -e ${place.base} ]; do sleep 0.1; done` },
  ]);
  while (!existsSync(join(place.base, "checking"))) await new Promise((resolve) => setTimeout(resolve, 20));
  busy.child.kill("SIGSTOP");
  const second = runWorld(place, [{ op: "open", takeOver: true }]).results[0];
  expect(second).toMatchObject({
    error: "ENVIRONMENT_BUSY",
    message: expect.stringContaining("in the middle of a rewind"),
  });
});
