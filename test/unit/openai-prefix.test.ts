// Bodies that begin alike give the same objects again, and only where the text is the same.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Prefix } from "../../adapters/openai/prefix.ts";

const body = (messages: readonly object[]): string => JSON.stringify({ model: "m", messages, tools: [] });
const reuse = (prefix: Prefix, messages: readonly object[]): object[] =>
  prefix.reuse(body(messages), "messages", JSON.parse(body(messages)).messages);

test("a list that has grown", () => {
  const prefix = new Prefix();
  const one = { role: "user", content: "ä€😀" };
  const first = reuse(prefix, [one]);
  const second = reuse(prefix, [one, { role: "assistant", content: "two" }]);
  expect(second[0]).toBe(first[0]);
  const third = reuse(prefix, [one, { role: "assistant", content: "two!" }]);
  expect(third[0]).toBe(first[0]);
  expect(third[1]).not.toBe(second[1]);
});

test("a text that JSON.stringify would write otherwise: nothing is taken for known", () => {
  const prefix = new Prefix();
  const text = '{"messages": [ {"role":"user","content":"a"} ]}';
  const parse = () => JSON.parse(text).messages;
  const first = prefix.reuse(text, "messages", parse());
  const second = prefix.reuse(text, "messages", parse());
  expect(second).toEqual(first);
  expect(second[0]).not.toBe(first[0]);
});

test("whatever the lists are, the items are those of the body, and what stood in both at the beginning is the same object", () => {
  const message = fc.record({
    role: fc.constantFrom("user", "tool"),
    content: fc.string({ unit: "binary", maxLength: 6 }),
  });
  fc.assert(
    fc.property(fc.array(fc.array(message, { maxLength: 8 }), { maxLength: 6 }), (lists) => {
      const prefix = new Prefix();
      let before: object[] = [];
      for (const list of lists) {
        const now = reuse(prefix, list);
        expect(now).toEqual(JSON.parse(body(list)).messages);
        for (const [at, item] of now.entries()) {
          if (JSON.stringify(before[at]) !== JSON.stringify(item)) break;
          expect(item).toBe(before[at]);
        }
        before = now;
      }
    }),
  );
});
