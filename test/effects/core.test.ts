// Effects behind a rewind: told, held, replayed, allowed again with a consent, made up for, and not crossed where that is forbidden.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Effect, OpenOptions, Thread, ToolOutcome } from "agentrewind";
import { describe, expect, test } from "vitest";
import { codeOf, endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { context, did, turn } from "../invariants/scene.ts";

type Args = Record<string, unknown>;

const mails = { send_mail: { class: "irreversible", describe: ({ to }: Args) => `mail to ${to}` } } as const;

async function scene(options: Partial<OpenOptions> = {}, place: Place = makePlace()) {
  const rewind = await useRewind(place, { effects: mails, ...options });
  const thread = rewind.thread("t");
  const world: string[] = [];
  let calls = 0;
  return {
    place,
    rewind,
    thread,
    world,
    /** A turn whose tool is this call. */
    async act(tool: string, args: Args, callId = `call-${calls++}`): Promise<ToolOutcome<unknown>> {
      const seen = [...Array((thread.head === null ? -1 : thread.get(thread.head).messages) + 1).keys()];
      await turn(thread, context(...seen.map((n) => `m${n}`)), {
        activity: did("worked"),
        tools: () => {},
      });
      return thread.runTool({ tool, args, callId }, (given) => {
        world.push(`${tool} ${JSON.stringify(given)}`);
        return `done ${world.length}`;
      });
    },
  };
}

const back = (thread: Thread, to: string) => thread.rewind({ to, lesson: "not so" });
const messageOf = (outcome: ToolOutcome<unknown>): string =>
  outcome.status === "held" ? outcome.message : outcome.status;

describe("invariant 7, F-44: an equivalent call behind a rewind", () => {
  test("hold is the default: the rewind names what is done, the call is answered with its result, and nothing is done twice", async () => {
    const { thread, world, act } = await scene();
    await act("note", { text: "x" });
    await act("send_mail", { to: "ann", subject: "hi" });
    const result = await back(thread, "c0");
    expect(result.effects).toEqual(['mail to ann at c1 -> "done 2"']);
    expect(result.message).toContain('Already done or delivered, do not repeat:\n- mail to ann at c1 -> "done 2"');
    const held = await act("send_mail", { subject: "hi", to: "ann" });
    expect(held).toMatchObject({ status: "held", effect: { checkpoint: "c1", state: "completed" } });
    expect(messageOf(held)).toMatch(/already done at c1: mail to ann -> done 2\. This answer is final/);
    expect(await act("send_mail", { to: "bob", subject: "hi" }), "another mail").toMatchObject({ status: "ran" });
    expect(world).toHaveLength(3);
  });

  test("on the same branch the same again is the agent's own will", async () => {
    const { world, act } = await scene();
    await act("send_mail", { to: "ann" });
    expect(await act("send_mail", { to: "ann" })).toMatchObject({ status: "ran" });
    expect(world).toHaveLength(2);
  });

  test("what the conversation tells of is no repetition: rewinds behind it, undo, and back to the old branch", async () => {
    const { thread, act } = await scene();
    await act("send_mail", { to: "ann" });
    await act("note", {});
    await act("note", {});
    await back(thread, "c1");
    expect(await act("send_mail", { to: "ann" }), "c1 tells of the first").toMatchObject({ status: "ran" });
    await back(thread, "c0");
    expect(await act("send_mail", { to: "ann" })).toMatchObject({ status: "held" });
    await back(thread, "c2");
    expect(await act("send_mail", { to: "ann" }), "the second lies on another branch").toMatchObject({
      status: "held",
    });
    const { effects } = await thread.undo();
    expect(effects).toEqual([
      expect.stringContaining("mail to ann at c0"),
      expect.stringContaining("mail to ann at c3"),
    ]);
  });

  test("in the turn of the target itself it counts as abandoned", async () => {
    const { thread, act } = await scene();
    await act("send_mail", { to: "ann" });
    expect((await back(thread, "c0")).effects).toHaveLength(1);
    const held = await thread.runTool({ tool: "send_mail", args: { to: "ann" } }, () => "again");
    expect(held.status).toBe("held");
  });

  test("a checkpoint that was made without the framework's messages does not tell of what was done before it", async () => {
    const { thread, act } = await scene();
    await act("send_mail", { to: "ann" });
    const explicit = await thread.checkpoint();
    await act("note", {});
    await back(thread, explicit.id);
    expect(await act("send_mail", { to: "ann" })).toMatchObject({ status: "held" });
  });

  test("scope environment leaves the conversation, and with it what it tells of", async () => {
    const { thread, act } = await scene();
    await act("send_mail", { to: "ann" });
    await act("note", {});
    const result = await thread.rewind({ to: "c0", scope: "environment" });
    expect(result.effects).toEqual([]);
    expect(await act("send_mail", { to: "ann" })).toMatchObject({ status: "ran" });
  });

  test("replay gives the recorded result, once for each time that it was done", async () => {
    const { thread, world, act } = await scene({ onRepeat: "replay" });
    await act("send_mail", { to: "ann" });
    await act("note", {});
    await back(thread, "c0");
    expect(await act("send_mail", { to: "ann" }, "a")).toMatchObject({ status: "replayed", result: "done 1" });
    expect(await act("send_mail", { to: "ann" }, "a"), "the same call").toMatchObject({
      status: "replayed",
      result: "done 1",
    });
    expect(world).toHaveLength(2);
    expect(await act("send_mail", { to: "ann" }, "b"), "a second mail").toMatchObject({ status: "ran" });
    expect(thread.effects().map(({ state }) => state)).toEqual(["completed", "completed"]);
  });

  test("allow does it again; an idempotent one is allowed unless something else is said", async () => {
    const { thread, world, act } = await scene({
      effects: { ...mails, put: { class: "idempotent" } },
      onRepeat: "allow",
    });
    await act("send_mail", { to: "ann" });
    await back(thread, "c0");
    expect(await act("send_mail", { to: "ann" })).toMatchObject({ status: "ran" });
    expect(world).toHaveLength(2);

    const other = await scene({
      effects: { put: { class: "idempotent" }, pay: { class: "reversible", onRepeat: "replay" } },
    });
    await other.act("put", {});
    await other.act("pay", {});
    expect((await back(other.thread, "c0")).effects).toEqual([expect.stringContaining("pay {}")]);
    expect(await other.act("put", {})).toMatchObject({ status: "ran" });
    expect(await other.act("pay", {})).toMatchObject({ status: "replayed" });
  });

  test("equivalence: the tool's own equality, else its key fields, else all arguments", async () => {
    const { thread, act } = await scene({
      effects: {
        pay: { class: "reversible", equals: (a, b) => a.invoice === b.invoice },
        mail: { class: "reversible", key: ["to", "meta.id"] },
        post: { class: "reversible" },
      },
    });
    await act("pay", { invoice: 7, amount: 10 });
    await act("mail", { to: "ann", meta: { id: 1 }, body: "x" });
    await act("post", { b: 1, a: { y: 2, x: [1] } });
    await back(thread, "c0");
    const again = async (tool: string, args: Args) => (await act(tool, args)).status;
    expect(await again("pay", { invoice: 7, amount: 12 })).toBe("held");
    expect(await again("pay", { invoice: 8, amount: 10 })).toBe("ran");
    expect(await again("mail", { to: "ann", meta: { id: 1 }, body: "other words" })).toBe("held");
    expect(await again("mail", { to: "ann", meta: { id: 2 }, body: "x" })).toBe("ran");
    expect(await again("post", { a: { x: [1], y: 2 }, b: 1 })).toBe("held");
    expect(await again("post", { a: { x: [1, 2], y: 2 }, b: 1 })).toBe("ran");
  });

  test("across processes and after prune it is remembered", async () => {
    const first = await scene();
    await first.act("send_mail", { to: "ann" });
    await first.act("note", {});
    await first.act("note", {});
    await back(first.thread, "c0");
    await endSession(first.rewind);
    const { rewind, act, thread } = await scene({}, first.place);
    for (let i = 0; i < 4; i++) await act("note", {});
    await rewind.prune({ keepLast: 1 });
    expect(await act("send_mail", { to: "ann" })).toMatchObject({ status: "held", effect: { checkpoint: "c0" } });
    expect(await act("send_mail", { to: "bob" })).toMatchObject({ status: "ran" });
    await act("note", {});
    await act("note", {});
    await rewind.prune({ keepLast: 1 });
    expect(await act("send_mail", { to: "bob" }), "its conversation still tells of it").toMatchObject({
      status: "ran",
    });
    expect(thread.effects()).toHaveLength(3);
  });

  test("a fork inherits what its prefix tells of, and knows what its siblings did", async () => {
    const { rewind, thread, act } = await scene();
    await act("send_mail", { to: "ann" });
    await act("note", {});
    const [one, two] = await rewind.fork("c1", { count: 2 });
    const mail = (of: typeof one, to: string) =>
      of?.thread("t").runTool({ tool: "send_mail", args: { to } }, () => "sent");
    expect(await mail(one, "ann"), "in its conversation").toMatchObject({ status: "ran" });
    expect(await mail(one, "bob")).toMatchObject({ status: "ran" });
    expect(await mail(two, "bob"), "done by its sibling").toMatchObject({ status: "held" });
    await two?.abandon();
    await one?.thread("t").checkpoint({ context: context("m0", "m1", "mails") });
    await one?.adopt();
    expect(await act("send_mail", { to: "bob" }), "the adopted conversation tells of it").toMatchObject({
      status: "ran",
    });
    expect(thread.effects()).toHaveLength(4);
  });
});

describe("consent", () => {
  test("the token works once, for the call that it was given for; a wrong one changes nothing", async () => {
    const asked: Effect[] = [];
    const { thread, world, act } = await scene({
      onConsent(effect) {
        asked.push(effect);
        return `token-${asked.length}`;
      },
    });
    await act("send_mail", { to: "ann" });
    await back(thread, "c0");
    const held = await act("send_mail", { to: "ann" });
    expect(messageOf(held)).toContain(
      'already done at c0: mail to ann -> done 1; to do it again call with confirm: "token-1" (it works once).',
    );
    expect(asked).toMatchObject([{ description: "mail to ann", result: "done 1" }]);
    expect(await act("send_mail", { to: "ann", confirm: "yes" })).toMatchObject({ status: "held" });
    expect(await act("send_mail", { to: "ann", confirm: "token-1" })).toMatchObject({ status: "ran" });
    expect(world.at(-1), "the token is taken out").toBe('send_mail {"to":"ann"}');
    const spent = await act("send_mail", { to: "ann", confirm: "token-1" });
    expect(messageOf(spent)).toContain("token-2");
    expect(world).toHaveLength(2);
  });

  test("nothing blocks: who has not answered yet is asked once, and the answer counts when the call comes again", async () => {
    let answer: (token: string) => void = () => {};
    let asked = 0;
    const { thread, act } = await scene({
      onConsent: () => {
        asked++;
        return new Promise<string>((resolve) => {
          answer = resolve;
        });
      },
    });
    await act("send_mail", { to: "ann" });
    await back(thread, "c0");
    expect(messageOf(await act("send_mail", { to: "ann" }))).toContain("is being asked");
    expect(messageOf(await act("send_mail", { to: "ann" }))).toContain("is being asked");
    expect(asked).toBe(1);
    answer("given");
    expect(messageOf(await act("send_mail", { to: "ann" }))).toContain('confirm: "given"');
    expect(await act("send_mail", { to: "ann", confirm: "given" })).toMatchObject({ status: "ran" });
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("the office is closed");
      },
    ],
    ["rejects", () => Promise.reject(new Error("the office is closed"))],
  ])("a handler that %s allows nothing: the answer is the fact, and final", async (_, onConsent) => {
    const warned: string[] = [];
    const listen = (warning: Error) => warned.push(warning.message);
    process.on("warning", listen);
    const { thread, world, act } = await scene({ onConsent });
    await act("send_mail", { to: "ann" });
    await back(thread, "c0");
    const text = messageOf(await act("send_mail", { to: "ann" }));
    expect(text).toMatch(/^Not run: already done at c0: mail to ann -> .* This answer is final/);
    expect(world).toHaveLength(1);
    await new Promise(setImmediate);
    process.off("warning", listen);
    expect(warned).toContain("onConsent failed: the office is closed");
  });

  test("what is no token is an error, and nothing is done", async () => {
    const { thread, world, act } = await scene({ onConsent: () => 7 as never });
    await act("send_mail", { to: "ann" });
    await back(thread, "c0");
    expect(await codeOf(act("send_mail", { to: "ann" }))).toBe("BAD_ARGUMENT");
    expect(world).toHaveLength(1);
  });
});

describe("one-time credentials", () => {
  test("an optional argument that is not there is none, and a description that cannot be made keeps no tool from its work", async () => {
    const effects = {
      book: {
        class: "reversible",
        consumes: ({ voucher }: Args) => [voucher as string | undefined],
        describe: ({ room }: Args) => (room as { name: string }).name.trim(),
      },
    } as const;
    const { thread, act } = await scene({ effects });
    expect(await act("book", {})).toMatchObject({ status: "ran" });
    expect(await act("book", { n: 2 })).toMatchObject({ status: "ran" });
    expect(thread.effects().map(({ description }) => description)).toEqual(["book {}", 'book {"n":2}']);
    expect(await act("book", { voucher: "v" })).toMatchObject({ status: "ran" });
    expect(await act("book", { voucher: "v", n: 3 })).toMatchObject({ status: "held" });
  });

  test("a call that uses one again is held, also with other arguments, on the same branch, and by another tool", async () => {
    const effects = {
      pay: { class: "reversible", consumes: ({ token }: Args) => [String(token)] },
      transfer: { class: "reversible", consumes: ({ code }: Args) => [String(code)] },
    } as const;
    const { thread, world, act } = await scene({ effects });
    await act("pay", { token: "abc", amount: 1 });
    expect(messageOf(await act("pay", { token: "abc", amount: 2 }))).toMatch(
      /one-time credential was used up at c0 by pay/,
    );
    await back(thread, "c0");
    expect(messageOf(await act("pay", { token: "abc", amount: 3 }))).toContain("used up");
    expect(messageOf(await act("transfer", { code: "abc" }))).toContain("used up");
    expect(await act("pay", { token: "new", amount: 3 })).toMatchObject({ status: "ran" });
    expect(world).toHaveLength(2);
  });
});

describe("how a call ends", () => {
  test("the same call again gives its recorded result; one that threw did nothing and may be made again", async () => {
    const { thread, act, world } = await scene();
    await act("note", {});
    const run = (fail: boolean) =>
      thread.runTool({ tool: "send_mail", args: { to: "ann" }, callId: "same" }, () => {
        world.push("tried");
        if (fail) throw new Error("no connection");
        return { id: 7 };
      });
    await expect(run(true)).rejects.toThrow("no connection");
    expect(thread.effects()).toMatchObject([{ state: "failed", note: "no connection" }]);
    expect(await run(false)).toMatchObject({ status: "ran", result: { id: 7 } });
    expect(await run(false)).toMatchObject({ status: "replayed", result: { id: 7 } });
    expect(world).toHaveLength(3);
  });

  test("what failed does not stand in the way, unless a failure leaves open whether it was done", async () => {
    const effects = { a: { class: "reversible" }, b: { class: "reversible", onFailure: "unknown" } } as const;
    const { thread } = await scene({ effects });
    await turn(thread, context("m0"), { tools: () => {} });
    const fails = (): never => {
      throw new Error("timeout");
    };
    for (const tool of ["a", "b"]) await expect(thread.runTool({ tool, args: {} }, fails)).rejects.toThrow("timeout");
    // Nor on the same branch: nobody knows.
    const again = await thread.runTool({ tool: "b", args: {} }, () => 1);
    expect(messageOf(again)).toContain("whether it was done all the same is not known");
    expect(await thread.runTool({ tool: "b", args: { other: 1 } }, () => 1)).toMatchObject({ status: "ran" });
    const { message } = await back(thread, "c0");
    expect(message).toContain("b {} at c0: it failed (timeout), and it is not known whether it was done");
    expect(message).not.toContain("a {}");
    expect(await thread.runTool({ tool: "a", args: {} }, () => 1)).toMatchObject({ status: "ran" });
    expect(await thread.runTool({ tool: "b", args: {} }, () => 1)).toMatchObject({ status: "held" });
  });

  test("results that are not JSON or too long are given to the caller, and their beginning is kept", async () => {
    const { thread, act } = await scene({ onRepeat: "replay" });
    await act("note", {});
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const long = "x".repeat(300_000);
    expect(await thread.runTool({ tool: "send_mail", args: { to: 1 } }, () => circle)).toMatchObject({ status: "ran" });
    expect(await thread.runTool({ tool: "send_mail", args: { to: 2 } }, () => long)).toMatchObject({ result: long });
    await back(thread, "c0");
    for (const [to, words] of [
      [1, "not JSON"],
      [2, "xxx…"],
    ] as const) {
      const held = await thread.runTool({ tool: "send_mail", args: { to } }, () => "again");
      expect(messageOf(held)).toContain(words);
    }
  });

  test("a person says what became of a call whose end nobody knows", async () => {
    const { place, thread, rewind, act } = await scene();
    await act("note", {});
    let end = (): void => {};
    const open = thread.runTool(
      { tool: "send_mail", args: { to: "ann" } },
      () => new Promise<void>((resolve) => (end = resolve)),
    );
    open.catch(() => {});
    await expect.poll(() => thread.effects()[0]?.state).toBe("running");
    await endSession(rewind);
    end();
    expect(await codeOf(open)).toBe("CLOSED");
    const next = await scene({}, place);
    const [effect] = next.thread.effects();
    expect(effect).toMatchObject({ state: "unknown" });
    expect(messageOf(await next.act("send_mail", { to: "ann" }))).toContain("not known");
    next.thread.settleEffect(effect?.id as number, "not-done");
    expect(await next.act("send_mail", { to: "ann" })).toMatchObject({ status: "ran" });
    expect(() => next.thread.settleEffect(effect?.id as number, "done")).toThrow("no effect of this thread");
  });

  test("a rewind while it runs: it is recorded as done, and its result is dropped", async () => {
    const { thread, act } = await scene();
    await act("note", {});
    await act("note", {});
    let end = (): void => {};
    const open = thread.runTool(
      { tool: "send_mail", args: { to: "ann" } },
      () => new Promise<void>((resolve) => (end = resolve)),
    );
    await expect.poll(() => thread.effects()[0]?.state).toBe("running");
    const { effects } = await back(thread, "c0");
    expect(effects).toEqual([expect.stringContaining("mail to ann at c1: begun")]);
    end();
    await expect(open).rejects.toMatchObject({ code: "STALE_EPOCH", message: expect.stringContaining("was done") });
    expect(thread.effects()).toMatchObject([{ state: "completed" }]);
    const stale = thread.runTool({ tool: "send_mail", args: { to: "bob" }, epoch: 0 }, () => "never");
    expect(await codeOf(stale)).toBe("STALE_EPOCH");
  });

  test("an irreversible one waits until the checkpoint before it is on disk", async () => {
    const { thread, act } = await scene();
    await act("note", {});
    const begun = await thread.beginTurn(context("m0", "m1"));
    const { id } = await begun.gate();
    const state = await thread.runTool({ tool: "send_mail", args: { to: "ann" } }, () => thread.get(id).state);
    expect(state).toMatchObject({ result: "durable" });
  });

  test("behind a checkpoint that could not be captured neither irreversible nor destructive tools run", async () => {
    const { place, thread, act, world } = await scene({
      destructive: ["wipe"],
      effects: { ...mails, ping: { class: "idempotent" } },
    });
    await act("note", {});
    const controller = new AbortController();
    controller.abort();
    await (await thread.beginTurn(context("m0", "m1"), { signal: controller.signal })).gate();
    expect(thread.get("c1").state).toBe("not-restorable");
    const run = async (tool: string, more: object = {}) =>
      messageOf(await thread.runTool({ tool, args: {}, ...more }, () => world.push(tool)));
    for (const held of [await run("send_mail"), await run("wipe"), await run("other", { destructive: true })])
      expect(held).toMatch(/^Not run: c1, the checkpoint before \w+, could not be captured/);
    expect(await run("ping")).toBe("ran");
    writeFileSync(join(place.workspace, "f"), "x");
    await turn(thread, context("m0", "m1", "m2"), { tools: () => {} });
    expect([await run("send_mail"), await run("wipe")]).toEqual(["ran", "ran"]);
  });
});

describe("F-42: compensation", () => {
  const booking = (undone: string[], fails: string[] = []): NonNullable<OpenOptions["effects"]> => ({
    book: {
      class: "compensable",
      describe: ({ room }) => `room ${room}`,
      compensate({ room }, result) {
        undone.push(`${room} ${result}`);
        if (fails.includes(room)) throw new Error(`${room} cannot be cancelled`);
      },
    },
    note_down: { class: "reversible" },
  });

  test("a rewind makes up for what it abandons, newest first, before the files go back; what fails is told", async () => {
    const undone: string[] = [];
    const { place, thread, act } = await scene({ effects: booking(undone, ["B"]), compensate: "always" });
    await act("note", {});
    writeFileSync(join(place.workspace, "rooms"), "A B C");
    for (const room of ["A", "B", "C"]) await act("book", { room });
    const plan = await thread.rewind({ to: "c0", dryRun: true });
    expect(plan.compensated).toEqual(["room C at c3", "room B at c2", "room A at c1"]);
    expect(plan.effects).toEqual([]);
    expect(undone).toEqual([]);
    const result = await back(thread, "c0");
    expect(undone).toEqual(["C done 4", "B done 3", "A done 2"]);
    expect(result.compensated).toEqual(["room C at c3", "room A at c1"]);
    expect(result.uncompensated).toEqual(["room B at c2: B cannot be cancelled"]);
    expect(result.effects).toEqual([
      "room B at c2: still in force, what should have made up for it failed (B cannot be cancelled)",
    ]);
    expect(result.message).toContain(
      "Taken back in the world too, not in force any more:\n- room C at c3\n- room A at c1",
    );
    expect(await act("book", { room: "A" }), "it is free again").toMatchObject({ status: "ran" });
    expect(await act("book", { room: "B" })).toMatchObject({ status: "held" });

    // The old branch believes in its bookings.
    const undo = await thread.undo();
    expect(undone.slice(3)).toEqual(["A done 5"]);
    expect(undo.message).toContain("not in force any more:\n- room A at c4\n- room A at c1\n");
  });

  test("the policy decides; nothing is made up for twice, and not where the conversation stays", async () => {
    const undone: string[] = [];
    const chosen = await scene({ effects: booking(undone), compensate: (effect) => effect.description !== "room A" });
    await chosen.act("note", {});
    for (const room of ["A", "B"]) await chosen.act("book", { room });
    await chosen.thread.rewind({ to: "c0", scope: "environment" });
    expect(undone).toEqual([]);
    await back(chosen.thread, "c0");
    await back(chosen.thread, "c2");
    await back(chosen.thread, "c0");
    expect(undone).toEqual(["B done 3"]);

    const never = await scene({ effects: booking(undone) });
    await never.act("book", { room: "Z" });
    await never.act("note", {});
    expect((await back(never.thread, "c0")).effects).toHaveLength(1);
    expect(undone).toHaveLength(1);
  });
});

describe("what a rewind may not leave behind", () => {
  test("EFFECT_CROSSED names the nearest checkpoint that may be returned to", async () => {
    const { thread, act } = await scene({ cross: ["idempotent", "reversible"] });
    await act("note", {});
    await act("send_mail", { to: "ann" });
    await act("note", {});
    await act("note", {});
    const refusal = { code: "EFFECT_CROSSED", details: { checkpoint: "c0", nearest: "c2", effects: [1] } };
    for (const to of ["c0", "c1"]) {
      await expect(thread.rewind({ to })).rejects.toMatchObject({
        code: "EFFECT_CROSSED",
        hint: expect.stringContaining("c2"),
      });
    }
    await expect(thread.rewind({ to: "c0" })).rejects.toMatchObject(refusal);
    expect(thread.admissible("c0", "x")).toMatchObject(refusal);
    expect(await codeOf(thread.rewind({ to: "c0", by: "agent", lesson: "x", crossEffects: true }))).toBe(
      "EFFECT_CROSSED",
    );
    expect(thread.admissible("c2", "x")).toBeUndefined();
    await thread.rewind({ to: "c0", scope: "environment" });
    await back(thread, "c2");
    expect(await thread.rewind({ to: "c0", crossEffects: true })).toMatchObject({
      effects: [expect.stringContaining("mail to ann")],
    });
  });

  test("done in the present turn: there is none, and that is said", async () => {
    const { thread, act } = await scene({ cross: (effect) => effect.tool !== "send_mail" });
    await act("note", {});
    await act("send_mail", { to: "ann" });
    await expect(back(thread, "c0")).rejects.toMatchObject({ code: "EFFECT_CROSSED", details: { nearest: null } });
  });
});

test("options that cannot be are refused, and the option is named", async () => {
  const refused = async (options: unknown, name: string) =>
    expect(useRewind(makePlace(), options as never)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining(name),
    });
  await refused({ effects: { pay: { class: "final" } } }, "effects.pay.class");
  await refused({ effects: { pay: { class: "compensable" } } }, "effects.pay.compensate");
  await refused({ effects: { pay: { class: "reversible", describe: "x" } } }, "effects.pay.describe");
  await refused({ effects: { pay: { class: "reversible", key: [] } } }, "effects.pay.key");
  await refused({ effects: { pay: { class: "reversible", compensat: 1 } } }, "effects.pay");
  await refused({ onRepeat: "never" }, "onRepeat");
  await refused({ onConsent: "ask" }, "onConsent");
  await refused({ compensate: "sometimes" }, "compensate");
  await refused({ cross: ["mails"] }, "cross");
  await refused({ destructive: "rm" }, "destructive");
});
