// Bodies that begin alike give the same objects again, and only where the text is the same.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Prefix } from "../../adapters/openai/prefix.ts";

const body = (messages: readonly object[]): string => JSON.stringify({ model: "m", messages, tools: [] });
const messagesIn = (prefix: Prefix, text: string): object[] => {
  const parsed = prefix.parse(text);
  expect(parsed).toEqual(JSON.parse(text));
  expect(JSON.parse(prefix.stringify(parsed))).toEqual(parsed);
  return parsed.messages as object[];
};
const reuse = (prefix: Prefix, messages: readonly object[]): object[] => messagesIn(prefix, body(messages));

test("a list that has grown", () => {
  const prefix = new Prefix("messages");
  const one = { role: "user", content: "ä€😀" };
  const first = reuse(prefix, [one]);
  const second = reuse(prefix, [one, { role: "assistant", content: "two" }]);
  expect(second[0]).toBe(first[0]);
  const third = reuse(prefix, [one, { role: "assistant", content: "two!" }]);
  expect(third[0]).toBe(first[0]);
  expect(third[1]).not.toBe(second[1]);
});

test("a text that JSON.stringify would write otherwise: nothing is taken for known", () => {
  const prefix = new Prefix("messages");
  const text = '{"messages": [ {"role":"user","content":"a"} ]}';
  const first = messagesIn(prefix, text);
  const second = messagesIn(prefix, text);
  expect(second[0]).not.toBe(first[0]);
});

/** Some of the items, in some order, some of them twice. */
const chosen = (seed: readonly number[], items: readonly object[]): object[] =>
  seed.flatMap((n) => items.slice(n % items.length, (n % items.length) + 1 + (n % 3)));

const a = '{"role":"user","content":"a"}';

test.each([
  ["the list twice", `{"messages":[${a}],"n":1}`, `{"messages":[${a}],"messages":[{"b":1}]}`],
  [
    "a list of that name elsewhere",
    `{"x":{"messages":[${a}]},"messages":[${a}]}`,
    `{"x":{"messages":[${a}]},"messages":[${a},${a}]}`,
  ],
  ["a longer number", '{"messages":[1]}', '{"messages":[12]}'],
  ["spaces behind", `{"messages":[${a}]}`, `{"messages":[${a} , ${a}]}`],
  ["a list that is none any more", `{"messages":[${a}]}`, '{"messages":"none"}'],
  ["fewer", `{"messages":[${a},${a}]}`, `{"messages":[${a}]}`],
])("the body is what its text says: %s", (_, ...texts) => {
  const prefix = new Prefix("messages");
  for (const text of [...texts, ...texts]) messagesIn(prefix, text);
});

test("a body that is not JSON is refused as ever", () => {
  const prefix = new Prefix("messages");
  messagesIn(prefix, `{"messages":[${a}]}`);
  expect(() => prefix.parse(`{"messages":[${a},]}`)).toThrow(SyntaxError);
  messagesIn(prefix, `{"messages":[${a}]}`);
  expect(() => prefix.parse(`{"messages":[${a}`)).toThrow(SyntaxError);
});

test("whatever the lists are, the items are those of the body, and what stood in both at the beginning is the same object", () => {
  const message = fc.record({
    role: fc.constantFrom("user", "tool"),
    content: fc.string({ unit: "binary", maxLength: 6 }),
  });
  fc.assert(
    fc.property(fc.array(fc.array(message, { maxLength: 8 }), { maxLength: 6 }), fc.array(fc.nat()), (lists, seed) => {
      const prefix = new Prefix("messages");
      let before: object[] = [];
      for (const list of lists) {
        const now = reuse(prefix, list);
        expect(now).toEqual(JSON.parse(body(list)).messages);
        for (const [at, item] of now.entries()) {
          if (JSON.stringify(before[at]) !== JSON.stringify(item)) break;
          expect(item).toBe(before[at]);
        }
        const sent = { messages: chosen(seed, [...now, { role: "user", content: '","messages":[' }]), stream: true };
        expect(JSON.parse(prefix.stringify(sent))).toEqual(sent);
        before = now;
      }
    }),
  );
});
