// Lists as callers cut, stop and repeat them, made acceptable to a provider that refuses what does not pair up.
import { describe, expect, test } from "vitest";
import { chatCompletions, type Item, paired, responses } from "../../src/wire/index.ts";

const chatCall = (...ids: string[]): Item => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })),
});
const chatResult = (id: string): Item => ({ role: "tool", tool_call_id: id, content: `result ${id}` });
const user: Item = { role: "user", content: "go" };
const call = (id: string): Item => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const result = (id: string): Item => ({ type: "function_call_output", call_id: id, output: `result ${id}` });
const reasoning = (id: string): Item => ({ type: "reasoning", id, summary: [] });

const answers = (items: readonly Item[]): unknown[] =>
  items.flatMap((item) =>
    item.role === "tool" ? [item.tool_call_id] : item.type === "function_call_output" ? [item.call_id] : [],
  );

test("a sound list is the same array", () => {
  const list = [user, chatCall("a", "b"), chatResult("b"), chatResult("a"), user];
  expect(paired(chatCompletions, list)).toBe(list);
  const items = [
    user,
    reasoning("r"),
    call("a"),
    call("b"),
    result("a"),
    result("b"),
    reasoning("s"),
    call("c"),
    result("c"),
  ];
  expect(paired(responses, items)).toBe(items);
});

describe("case 64: a list that was cut", () => {
  test("so that it begins at a result", () => {
    expect(paired(chatCompletions, [chatResult("b"), user])).toEqual([user]);
    expect(paired(responses, [result("b"), user])).toEqual([user]);
  });

  test("so that one of two calls is left", () => {
    const kept = paired(chatCompletions, [user, chatCall("a"), chatResult("a"), chatResult("b"), user]);
    expect(answers(kept)).toEqual(["a"]);
  });

  test("in front of it, where the server has the calls", () => {
    const list = [result("b"), user];
    expect(paired(responses, list, true)).toBe(list);
  });
});

test("case 65: of two parallel calls one was never answered: it is, right behind them", () => {
  const list = paired(chatCompletions, [user, chatCall("a", "b"), chatResult("a"), user]);
  expect(answers(list)).toEqual(["a", "b"]);
  expect(list.at(-1)).toBe(user);
  const items = paired(responses, [user, call("a"), call("b"), result("b"), user]);
  expect(answers(items)).toEqual(["b", "a"]);
});

describe("case 68", () => {
  test("reasoning whose call is gone goes too", () => {
    expect(paired(responses, [user, reasoning("r"), user])).toEqual([user, user]);
    expect(paired(responses, [user, reasoning("r")])).toEqual([user]);
    const kept = [user, reasoning("r"), reasoning("s"), call("a"), result("a")];
    expect(paired(responses, kept)).toBe(kept);
  });

  test("a call that is stored twice is sent once, with one result", () => {
    const items = paired(responses, [user, call("a"), result("a"), call("a"), result("a"), user]);
    expect(items).toEqual([user, call("a"), result("a"), user]);
    const list = paired(chatCompletions, [user, chatCall("a"), chatCall("a"), chatResult("a")]);
    expect(answers(list)).toEqual(["a"]);
    expect(list.filter((item) => item.role === "assistant")).toHaveLength(1);
  });
});

test("a server that gives its ids again: calls with other results are other calls", () => {
  const list = [user, chatCall("0"), chatResult("0"), chatCall("0"), { ...chatResult("0"), content: "another" }, user];
  expect(paired(chatCompletions, list)).toBe(list);
  const items = [user, call("0"), result("0"), call("0"), { ...result("0"), output: "another" }];
  expect(paired(responses, items)).toBe(items);
});

test("case 67: a run that was stopped in the middle of a call", () => {
  expect(answers(paired(chatCompletions, [user, chatCall("a"), user]))).toEqual(["a"]);
  expect(answers(paired(responses, [user, reasoning("r"), call("a"), user]))).toEqual(["a"]);
});

describe("what the API's server carries out itself", () => {
  const search: Item = { type: "web_search_call", id: "ws", status: "completed", action: { type: "search" } };
  const shell: Item = {
    type: "shell_call",
    call_id: "s",
    action: { commands: ["ls"] },
    environment: { type: "container_reference", container_id: "c" },
  };
  const listed: Item = { type: "shell_call_output", call_id: "s", output: [] };

  test("has no result, and stands between calls and their results as it stood", () => {
    const items = [user, reasoning("r"), search, call("a"), search, call("b"), result("a"), result("b"), user];
    expect(paired(responses, items)).toBe(items);
    const searched = [user, reasoning("r"), search, user];
    expect(paired(responses, searched)).toBe(searched);
  });

  test("keeps the result that the server gave it", () => {
    const items = [user, call("a"), shell, listed, call("b"), result("a"), result("b"), user];
    expect(paired(responses, items)).toBe(items);
  });

  test("says nothing", () => {
    expect(responses.text({ type: "mcp_call", id: "m", name: "f", arguments: "{}", output: "much" })).toBe("");
  });
});

test("a call whose result is an image is left out where it has none, with the thoughts that led to it", () => {
  const computer: Item = {
    type: "computer_call",
    call_id: "c",
    actions: [{ type: "screenshot" }],
    status: "completed",
  };
  const shot: Item = { type: "computer_call_output", call_id: "c", output: { type: "computer_screenshot" } };
  expect(paired(responses, [user, reasoning("r"), computer, user])).toEqual([user, user]);
  expect(answers(paired(responses, [user, call("a"), computer, user]))).toEqual(["a"]);
  const answered = [user, reasoning("r"), computer, shot, user];
  expect(paired(responses, answered)).toBe(answered);
});
