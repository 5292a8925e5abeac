// Shell and patch calls of OpenAI's agents SDK are calls as any other: their files go back, and where the product answers one it does so in the form of its kind.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Agent, applyPatchTool, OpenAIProvider, Runner, shellTool } from "@openai/agents";
import { withRewind } from "agentrewind/openai-agents";
import { afterEach, describe, expect, it } from "vitest";
import { agentItems } from "../../adapters/openai-agents/format.ts";
import { calledItem, type Json, saidItem, type ToldServer, toldResponse, toldServer } from "../helpers/told-server.ts";
import { openScene, type Scene } from "../langchain/harness.ts";

// The SDK brings a version of OpenAI's client of its own.
const { OpenAI } = createRequire(createRequire(import.meta.url).resolve("@openai/agents"))("openai");

let scene: Scene;
let server: ToldServer;
const kinds: Readonly<Record<string, (id: string) => Json>> = {
  shell_call: (id) => ({
    type: "shell_call",
    id: `sh_${id}`,
    call_id: id,
    action: { commands: [id], max_output_length: null, timeout_ms: null },
    status: "completed",
  }),
  apply_patch_call: (id) => ({
    type: "apply_patch_call",
    id: `apc_${id}`,
    call_id: id,
    operation: { type: "create_file", path: id, diff: "+x" },
    status: "completed",
  }),
};

const rewindTo = (checkpoint: string, id: string): Json =>
  calledItem("rewind", { checkpoint, lesson: "it was wrong" }, id);

async function run(replies: readonly (readonly Json[])[]): Promise<Json[]> {
  scene = await openScene(() => ({ content: "" }));
  server = await toldServer((body, count) => toldResponse(body, [...(replies[count] ?? [saidItem("end")])]));
  const openAIClient = new OpenAI({ apiKey: "none", baseURL: server.baseUrl, maxRetries: 0 });
  const provider = new OpenAIProvider({ openAIClient, useResponses: true });
  const modelProvider = withRewind(provider, scene.rewind, { thread: "t1" });
  const made = (name: string): void => writeFileSync(join(scene.workspace, name), "x");
  const shell = shellTool({
    shell: {
      run: async ({ commands }) => {
        for (const name of commands) made(name);
        return { output: [{ stdout: "ok", stderr: "", outcome: { type: "exit", exitCode: 0 } }] };
      },
    },
  });
  const edits = async ({ path }: { path: string }) => {
    made(path);
    return { status: "completed" as const, output: "ok" };
  };
  const patch = applyPatchTool({ editor: { createFile: edits, updateFile: edits, deleteFile: edits } });
  const agent = new Agent({ name: "agent", model: "told", tools: [shell, patch] });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  expect((await runner.run(agent, "go")).finalOutput).toBe("end");
  return server.bodies.at(-1)?.input as Json[];
}

describe.each(Object.entries(kinds))("%s", (type, call) => {
  afterEach(async () => {
    await server.close();
    await scene.close();
  });

  it("is taken back by a rewind with the files that it changed", async () => {
    const sent = await run([[call("call_kept")], [call("call_gone")], [rewindTo("c1", "call_3")]]);
    expect(scene.files()).toEqual(["call_kept"]);
    expect(sent.map((item) => item.type ?? item.role)).toEqual(["user", type, `${type}_output`, "user"]);
    expect(JSON.stringify(sent.slice(0, -1))).not.toContain("call_gone");
  });

  it("beside a refused rewind is answered in its own form", async () => {
    const sent = await run([[call("call_1"), rewindTo("c9", "call_2")]]);
    const answers = sent.filter((item) => String(item.type).endsWith("_output"));
    expect(answers.map((item) => [item.type, item.call_id])).toEqual([
      [`${type}_output`, "call_1"],
      ["function_call_output", "call_2"],
    ]);
    expect(JSON.stringify(answers[0])).toContain("Not run");
  });
});

it("an approval that was asked for is refused by a response, and a call whose result is an image by nothing", () => {
  const request = {
    type: "hosted_tool_call",
    id: "mcpr_1",
    name: "mcp_approval_request",
    status: "completed",
    providerData: { type: "mcp_approval_request", id: "mcpr_1", name: "send", arguments: "{}", server_label: "mail" },
  };
  const [asked] = agentItems.calls(request);
  expect(asked).toMatchObject({ id: "mcpr_1", name: "send", arguments: "{}" });
  const response = asked && agentItems.result(asked, "Not run.");
  expect(response).toEqual({
    type: "hosted_tool_call",
    name: "mcp_approval_response",
    providerData: { approve: false, approval_request_id: "mcpr_1", reason: "Not run." },
  });
  expect(agentItems.answers(response as Json)).toBe("mcpr_1");
  const [clicked] = agentItems.calls({ type: "computer_call", callId: "c", actions: [{ type: "screenshot" }] });
  expect(clicked && agentItems.result(clicked, "Not run.")).toBeUndefined();
  expect(agentItems.calls({ ...request, name: "mcp_call", providerData: { type: "mcp_call" } })).toEqual([]);
});
