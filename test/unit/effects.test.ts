// When two calls are the same, and of which effects a context tells.
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonical, keyOf } from "../../src/session/canonical.ts";
import { effectRules } from "../../src/session/effect-rules.ts";
import { heldText } from "../../src/session/effect-texts.ts";
import type { Effect } from "../../src/session/effect-types.ts";
import { describeEffect, resultText } from "../../src/session/effect-views.ts";
import { type KnownEffects, knownWith, knows } from "../../src/store/effects.ts";

const text = (value: unknown): string => canonical(value, "It");

test("the order of keys does not count, everything else does", () => {
  expect(text({ b: [1, { d: 1, c: null }], a: "x" })).toBe('{"a":"x","b":[1,{"c":null,"d":1}]}');
  expect(text({ a: undefined, b: 1 })).toBe('{"b":1}');
  expect(text(JSON.parse('{"__proto__": 1, "a": 2}'))).toBe('{"__proto__":1,"a":2}');
  for (const [one, other] of [
    [{ a: 1 }, { a: "1" }],
    [{ a: [1, 2] }, { a: [2, 1] }],
    [{ a: null }, {}],
    [{ a: {} }, { a: [] }],
    ["1", 1],
  ])
    expect(text(one)).not.toBe(text(other));
  expect(text(undefined)).toBe("null");
  const circle: unknown[] = [];
  circle.push(circle);
  for (const value of [circle, { a: 1n }]) expect(() => text(value)).toThrow("It is not JSON");
});

test("canonical is a function of the JSON value alone", () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, one]) => [key, shuffled(one)]),
    );
  };
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(text(shuffled(value))).toBe(text(value));
      expect(JSON.parse(text(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("key fields are found by path; a call that has none of them has no key", () => {
  const key = (args: unknown) => keyOf(args, ["to", "invoice.id"]);
  expect(key({ to: "a", invoice: { id: 1, total: 5 }, text: "x" })).toBe(key({ invoice: { id: 1 }, to: "a" }));
  expect(key({ to: "a", invoice: { id: 2 } })).not.toBe(key({ to: "a", invoice: { id: 1 } }));
  expect(key({ to: "a" })).toBe(key({ to: "a", invoice: null }));
  expect(key({ to: "a" })).not.toBe(key({ invoice: { id: "a" } }));
  for (const args of [{}, { text: "x" }, "to", null, [1]]) expect(key(args)).toBeUndefined();
  expect(keyOf({}, ["constructor"])).toBeUndefined();
});

test("a context tells of the stretches that led to it", () => {
  const first = knownWith([], 1, 0, 3);
  expect(knownWith(first, 1, 0, 5)).toEqual([[1, 0, 5]]);
  expect(knownWith(first, 1, 3, 3)).toEqual(first);
  const known: KnownEffects = knownWith(knownWith(first, 1, 6, 8), 2, 0, 7);
  expect(known).toEqual([
    [1, 0, 3],
    [1, 6, 8],
    [2, 0, 7],
  ]);
  const ids = (thread: number) => [...Array(10).keys()].filter((id) => knows(known, { id, thread }));
  expect([ids(1), ids(2), ids(3)]).toEqual([[1, 2, 3, 7, 8], [1, 2, 3, 4, 5, 6, 7], []]);
});

test("what is not declared has no rules, whatever its name", () => {
  const rules = effectRules({ effects: {}, compensate: "never", cross: "all", destructive: [] });
  expect([rules.of("constructor"), rules.of("x"), rules.onRepeat("toString")]).toEqual([undefined, undefined, "hold"]);
});

const effect = (over: Partial<Effect> = {}): Effect => ({
  id: 1,
  thread: "t",
  tool: "send_mail",
  class: "irreversible",
  description: "mail to ann",
  checkpoint: "c5",
  epoch: 0,
  state: "completed",
  result: "sent",
  note: null,
  createdAt: "",
  ...over,
});

test("what a model reads of a call that was not made", () => {
  expect(heldText(effect(), null, "confirm")).toBe(
    "Not run: already done at c5: mail to ann -> sent. This answer is final: go on without doing it again.",
  );
  expect(heldText(effect(), "k7", "consent")).toBe(
    'Not run: already done at c5: mail to ann -> sent; to do it again call with consent: "k7" (it works once).',
  );
  expect(heldText(effect({ state: "unknown", result: null }), null, "confirm")).toBe(
    "Not run: it is not known whether this is done already. mail to ann was begun at c5, and no result was recorded. " +
      "Look whether it was done, with means that change nothing. This answer is final: go on without doing it again.",
  );
  expect(heldText(effect(), { later: true }, "confirm")).toMatch(/is being asked: go on with something else/);
});

test("what a model reads of what is done", () => {
  expect(describeEffect(effect())).toBe('mail to ann at c5 -> "sent"');
  expect(describeEffect(effect({ state: "unknown", checkpoint: null }))).toBe(
    "mail to ann: begun, and not known whether it was done; look before you do it again",
  );
  expect(resultText('{"content":"sent  to\\nann","status":null}')).toBe("sent to ann");
  expect(resultText('{"id":7,"password":"hunter2hunter2"}')).toBe('{"id":7,"password":"[masked]"}');
  expect(resultText(JSON.stringify("y".repeat(9_000))).length).toBeLessThanOrEqual(300);
});
