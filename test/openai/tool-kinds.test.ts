// Responses: calls of every kind that the caller answers count as calls, and where the product answers one it does so in the form of its kind.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { calledItem, type Json, saidItem, type ToldServer, toldResponse, toldServer } from "../helpers/told-server.ts";
import { openScene, type Scene } from "../langchain/harness.ts";

let scene: Scene;
let server: ToldServer;
afterEach(async () => {
  await server?.close();
  await scene?.close();
});

interface Kind {
  call(id: string): Json;
  /** As the caller's tool answers. */
  result(id: string): Json;
  /** As the product answers with these words; undefined where it cannot. */
  answer(id: string, text: string): Json | undefined;
}

const kinds: Readonly<Record<string, Kind>> = {
  function_call: {
    call: (id) => calledItem("f", {}, id),
    result: (id) => ({ type: "function_call_output", call_id: id, output: "ok" }),
    answer: (id, text) => ({ type: "function_call_output", call_id: id, output: text }),
  },
  custom_tool_call: {
    call: (id) => ({ type: "custom_tool_call", id: `ctc_${id}`, call_id: id, name: "patch", input: "*** Begin" }),
    result: (id) => ({ type: "custom_tool_call_output", call_id: id, output: "ok" }),
    answer: (id, text) => ({ type: "custom_tool_call_output", call_id: id, output: text }),
  },
  local_shell_call: {
    call: (id) => ({
      type: "local_shell_call",
      id: `lsh_${id}`,
      call_id: id,
      action: { type: "exec", command: ["touch", id], env: {} },
      status: "completed",
    }),
    result: (id) => ({ type: "local_shell_call_output", id, output: "ok" }),
    answer: (id, text) => ({
      type: "local_shell_call_output",
      call_id: id,
      id,
      output: text,
      status: "incomplete",
    }),
  },
  shell_call: {
    call: (id) => ({
      type: "shell_call",
      id: `sh_${id}`,
      call_id: id,
      action: { commands: [`touch ${id}`], max_output_length: 9, timeout_ms: null },
      environment: { type: "local" },
      status: "completed",
    }),
    result: (id) => ({
      type: "shell_call_output",
      call_id: id,
      output: [{ stdout: "ok", stderr: "", outcome: { type: "exit", exit_code: 0 } }],
    }),
    answer: (id, text) => ({
      type: "shell_call_output",
      call_id: id,
      output: [{ stdout: "", stderr: text, outcome: { type: "exit", exit_code: 1 } }],
      max_output_length: 9,
    }),
  },
  apply_patch_call: {
    call: (id) => ({
      type: "apply_patch_call",
      id: `apc_${id}`,
      call_id: id,
      operation: { type: "create_file", path: id, diff: "+x" },
      caller: { type: "program", caller_id: "prog_1" },
      status: "completed",
    }),
    result: (id) => ({ type: "apply_patch_call_output", call_id: id, status: "completed", output: "ok" }),
    answer: (id, text) => ({
      type: "apply_patch_call_output",
      call_id: id,
      status: "failed",
      output: text,
      caller: { type: "program", caller_id: "prog_1" },
    }),
  },
  computer_call: {
    call: (id) => ({
      type: "computer_call",
      id: `cu_${id}`,
      call_id: id,
      actions: [{ type: "screenshot" }],
      pending_safety_checks: [],
      status: "completed",
    }),
    result: (id) => ({
      type: "computer_call_output",
      call_id: id,
      output: { type: "computer_screenshot", image_url: "data:image/png;base64,AA==" },
    }),
    answer: () => undefined,
  },
  mcp_approval_request: {
    call: (id) => ({ type: "mcp_approval_request", id, name: "send", arguments: "{}", server_label: "mail" }),
    result: (id) => ({ type: "mcp_approval_response", approval_request_id: id, approve: true }),
    answer: (id, text) => ({ type: "mcp_approval_response", approval_request_id: id, approve: false, reason: text }),
  },
  tool_search_call: {
    call: (id) => ({
      type: "tool_search_call",
      id: `ts_${id}`,
      call_id: id,
      execution: "client",
      arguments: { query: "x" },
      status: "completed",
    }),
    result: (id) => ({ type: "tool_search_output", call_id: id, execution: "client", status: "completed", tools: [] }),
    answer: (id) => ({ type: "tool_search_output", call_id: id, execution: "client", status: "completed", tools: [] }),
  },
};

const rewindTo = (checkpoint: string, id: string): Json =>
  calledItem("rewind", { checkpoint, lesson: "it was wrong" }, id);

/** What the caller does with a call: writes a file, or leaves the call and says something else. */
type Act = "write" | "stop";

async function run(kind: Kind, replies: readonly (readonly Json[])[], acts: readonly Act[]): Promise<Json[]> {
  scene = await openScene(() => ({ content: "" }));
  server = await toldServer((body, count) => toldResponse(body, [...(replies[count] ?? [saidItem("end")])]));
  const plain = new OpenAI({ apiKey: "none", baseURL: server.baseUrl, maxRetries: 0 });
  const openai = withRewind(plain, scene.rewind, { thread: "t1" });
  const input: Json[] = [{ role: "user", content: "go" }];
  const tools = [{ type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false }];
  for (const act of [...acts, undefined]) {
    const { output } = await openai.responses.create({ model: "told", input, tools } as never);
    input.push(...(output as unknown as Json[]));
    const id = (output as unknown as Json[])
      .map((item) => String(item.call_id ?? item.id))
      .find((one) => one.startsWith("call_"));
    if (id === undefined) break;
    if (act === "write") {
      writeFileSync(join(scene.workspace, id), "x");
      input.push(kind.result(id));
    } else input.push({ role: "user", content: "stop" });
  }
  return server.bodies.at(-1)?.input as Json[];
}

const typesOf = (items: readonly Json[]): unknown[] => items.map(({ type, role }) => type ?? role);

describe.each(Object.entries(kinds))("%s", (type, kind) => {
  it("is taken back by a rewind with the files that it changed", async () => {
    const replies = [[kind.call("call_kept")], [kind.call("call_gone")], [rewindTo("c1", "call_3")]];
    const sent = await run(kind, replies, ["write", "write"]);
    expect(scene.files()).toEqual(["call_kept"]);
    expect(JSON.stringify(sent.slice(0, -1))).not.toContain("call_gone");
    expect(typesOf(sent)).toEqual(["user", type, kind.result("").type, "message"]);
    expect(JSON.stringify(sent.at(-1))).not.toContain("Kept, because");
  });

  it("beside a refused rewind is answered in its own form", async () => {
    const sent = await run(kind, [[kind.call("call_1"), rewindTo("c9", "call_2")]], []);
    const text = "Not run: it was sent together with a rewind that was refused. Send it again, without the rewind.";
    const answer = kind.answer("call_1", text);
    const refused = sent.filter((item) => item.type === "function_call_output" && item.call_id === "call_2");
    const own = answer === undefined ? [] : [kind.call("call_1")];
    expect(sent).toEqual([
      { role: "user", content: "go" },
      ...own,
      rewindTo("c9", "call_2"),
      ...(answer === undefined ? [] : [answer]),
      ...refused,
    ]);
    expect(refused).toHaveLength(1);
  });

  it("that was never answered is answered in its own form", async () => {
    const sent = await run(kind, [[kind.call("call_1")]], ["stop"]);
    const text =
      "No result: the run was stopped or sent back before this call had ended. Look at what it did before you send it again.";
    const answer = kind.answer("call_1", text);
    const exchange = answer === undefined ? [] : [kind.call("call_1"), answer];
    expect(sent).toEqual([{ role: "user", content: "go" }, ...exchange, { role: "user", content: "stop" }]);
  });
});

it("a rewind behind calls that changed no file is one", async () => {
  scene = await openScene(() => ({ content: "" }));
  const { local_shell_call: kind } = kinds as { local_shell_call: Kind };
  const replies = [[kind.call("call_1")], [rewindTo("c0", "call_2")], [saidItem("end")]];
  server = await toldServer((body, count) => toldResponse(body, replies[count] as Json[]));
  const plain = new OpenAI({ apiKey: "none", baseURL: server.baseUrl, maxRetries: 0 });
  const openai = withRewind(plain, scene.rewind, { thread: "t1" });
  const tools = [{ type: "local_shell" }];
  const input: Json[] = [{ role: "user", content: "go" }];
  await openai.responses.create({ model: "told", input, tools } as never);
  const list = [...input, kind.call("call_1"), kind.result("call_1")];
  await openai.responses.create({ model: "told", input: list, tools } as never);
  expect(JSON.stringify(server.bodies.at(-1)?.input)).toContain("You are back at c0");
});
