// Whatever a caller does with its list, what was taken back is not shown again, what was not stays, and calls stay paired.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  chatCompletions,
  type Entry,
  type Format,
  follow,
  type History,
  historyOf,
  type Item,
  isShown,
  notesOf,
  type OwnEntry,
  paired,
  responses,
  returnTo,
  shownItems,
  shownSince,
} from "../../src/wire/index.ts";

type Step =
  | { readonly kind: "turn"; readonly calls: number }
  | { readonly kind: "person" }
  | { readonly kind: "words" }
  | { readonly kind: "rewind"; readonly to: number; readonly keeps: boolean }
  | { readonly kind: "shorten" }
  | { readonly kind: "cut"; readonly part: number }
  | { readonly kind: "compact"; readonly part: number }
  | { readonly kind: "restart" };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("turn" as const), calls: fc.integer({ min: 1, max: 3 }) }) },
  fc.record({ kind: fc.constant("person" as const) }),
  fc.record({ kind: fc.constant("words" as const) }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("rewind" as const), to: fc.nat(20), keeps: fc.boolean() }) },
  fc.record({ kind: fc.constant("shorten" as const) }),
  fc.record({ kind: fc.constant("cut" as const), part: fc.double({ min: 0, max: 0.9, noNaN: true }) }),
  fc.record({ kind: fc.constant("compact" as const), part: fc.double({ min: 0, max: 0.9, noNaN: true }) }),
  fc.record({ kind: fc.constant("restart" as const) }),
);

/** A caller with its list, and the history below it. */
class World {
  readonly format: Format;
  list: Item[] = [];
  history: History = [];
  readonly snapshots: History[] = [];
  /** Markers of what was taken back, and of what is told. */
  gone = new Set<string>();
  told: string[] = [];
  #count = 0;

  constructor(format: Format) {
    this.format = format;
  }

  next(what: string): string {
    return `<${what}${++this.#count}>`;
  }

  words(role: string, text: string): Item {
    return this.format.callsApart
      ? { type: "message", role, content: [{ type: "input_text", text }] }
      : { role, content: text };
  }

  reply(calls: { id: string; name: string; arguments: string }[]): Item[] {
    if (this.format.callsApart) {
      return calls.map(({ id, ...call }) => ({ type: "function_call", call_id: id, ...call }));
    }
    const made = calls.map(({ id, ...called }) => ({ id, type: "function", function: called }));
    return [{ role: "assistant", content: null, tool_calls: made }];
  }

  request(): void {
    this.history = follow(this.format, this.history, structuredClone(this.list)).history;
    this.snapshots.push(this.history);
  }

  rewind(target: History, keeps: boolean): void {
    const since = shownSince(this.history, target);
    const isPerson = (entry: Entry): boolean => isShown(entry) && this.format.speaker(entry.item) === "person";
    const carried = new Set<Entry>(keeps ? since.filter(isPerson) : []);
    const marker = this.next("told");
    const message: OwnEntry = {
      own: "told",
      item: this.format.message(marker),
      told: { checkpoint: "c0", epoch: this.#count },
    };
    const shownThen = new Set(markers(shownItems(target)));
    for (const marker of markers(shownItems(this.history))) if (!shownThen.has(marker)) this.gone.add(marker);
    for (const entry of carried) if (isShown(entry)) for (const one of markers([entry.item])) this.gone.delete(one);
    for (const marker of shownThen) this.gone.delete(marker);
    this.told = [...this.told.filter((one) => shownThen.has(one)), marker];
    this.history = returnTo(this.history, target, carried, [message]);
  }
}

const markers = (items: readonly Item[]): string[] => JSON.stringify(items).match(/<[a-z]+\d+>/g) ?? [];

function run(world: World, one: Step): void {
  const { format } = world;
  if (one.kind === "turn") {
    const calls = Array.from({ length: one.calls }, () => {
      const id = world.next("call");
      return { id, name: "tool", arguments: JSON.stringify({ of: id }) };
    });
    world.list.push(...world.reply(calls), ...calls.map((call) => format.result(call, world.next("result")) as Item));
  } else if (one.kind === "person") world.list.push(world.words("user", world.next("person")));
  else if (one.kind === "words")
    world.list.push(world.words("assistant", world.next("words")), world.words("user", "go on"));
  else if (one.kind === "shorten") {
    world.list = world.list.map((item) =>
      format.answers(item) === undefined
        ? item
        : (format.result({ id: format.answers(item) as string, name: "", arguments: "" }, "short") as Item),
    );
  } else if (one.kind === "cut" || one.kind === "compact") {
    // Never inside of a reply and its results, and never all of it.
    let at = Math.floor(world.list.length * one.part);
    while (at > 0 && at < world.list.length && format.speaker(world.list[at] as Item) !== "model") at--;
    while (at > 0 && format.callsApart && format.speaker(world.list[at - 1] as Item) === "model") at--;
    if (at === 0) return;
    const summary = one.kind === "compact" ? [world.words("user", world.next("summary"))] : [];
    world.list = [...summary, ...world.list.slice(at)];
  } else if (one.kind === "restart") {
    const notes = JSON.parse(JSON.stringify(notesOf(format, world.history)));
    world.history = historyOf(format, structuredClone(shownItems(world.history)), notes);
  }
  if (one.kind === "rewind") {
    const target = world.snapshots[one.to % world.snapshots.length];
    if (target !== undefined) world.rewind(target, one.keeps);
  } else if (one.kind !== "restart") world.request();
}

test.each([chatCompletions, responses])("$name", (format) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 14 }), (steps) => {
      const world = new World(format);
      world.list.push(world.words("user", world.next("person")));
      world.request();
      for (const one of steps) {
        run(world, one);
        const shown = paired(format, shownItems(world.history));
        const seen = markers(shown);
        for (const marker of world.gone) expect(seen).not.toContain(marker);
        for (const marker of world.told) expect(seen.filter((one) => one === marker)).toHaveLength(1);
        // Everything of the caller's list that was not taken back is there.
        if (one.kind !== "rewind" && one.kind !== "restart") {
          for (const marker of markers(world.list)) if (!world.gone.has(marker)) expect(seen).toContain(marker);
        }
        expectPaired(format, shown);
        const again = historyOf(
          format,
          shownItems(world.history),
          JSON.parse(JSON.stringify(notesOf(format, world.history))),
        );
        expect(notesOf(format, again)).toEqual(notesOf(format, world.history));
      }
    }),
    { numRuns: 400 },
  );
});

function expectPaired(format: Format, items: readonly Item[]): void {
  const called = items.flatMap((item) => format.calls(item)).map(({ id }) => id);
  const answered = items.map((item) => format.answers(item)).filter((id) => id !== undefined);
  expect([...answered].sort()).toEqual([...called].sort());
}
