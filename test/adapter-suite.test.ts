// The adapter suite itself: adapters that are broken on purpose fail exactly the tests that are about it.
import { type AdapterInitializer, type AdapterScene, adapterSuite } from "agentrewind/conformance";
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { type Client, chatLoop } from "./openai/harness.ts";

interface Body {
  messages: { role: string; content?: string | null; tool_calls?: { id: string }[]; tool_call_id?: string }[];
}

type Tamper = (body: Body, memory: Body["messages"]) => Body["messages"];

/** A sound adapter, between which and the model's server somebody changes requests, or whose loop is another one. */
function adapter({
  tamper = (body) => body.messages,
  start,
}: {
  readonly tamper?: Tamper;
  readonly start?: (scene: AdapterScene, openai: Client) => ReturnType<AdapterInitializer["start"]>;
} = {}): AdapterInitializer {
  return {
    name: "openai",
    start(scene) {
      const { baseUrl, rewind, thread, tool } = scene;
      const memory: Body["messages"] = [];
      const fetch = (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
        const body = JSON.parse(init?.body as string) as Body;
        const messages = tamper(body, memory);
        return globalThis.fetch(input, { ...init, body: JSON.stringify({ ...body, messages }) });
      };
      const openai = withRewind(new OpenAI({ apiKey: "none", baseURL: baseUrl, maxRetries: 0, fetch }), rewind, {
        thread,
      }) as Client;
      if (start !== undefined) return start(scene, openai);
      const list: unknown[] = [];
      const run = openai.rewind.tool(tool.name, (args: { path: string; text: string }) => tool.run(args));
      return { say: (text) => chatLoop(openai, (_name, args) => run(args as never), text, list) };
    },
  };
}

/** Names of the tests that fail, in the suite's order. */
async function failing(initializer: AdapterInitializer): Promise<string[]> {
  const failed = new Set<string>();
  const tests = adapterSuite(initializer);
  const left = [...tests];
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { name, run } = next;
      await run().catch(() => failed.add(name));
    }
  };
  await Promise.all(Array.from({ length: 6 }, work));
  return tests.map(({ name }) => name).filter((name) => failed.has(name));
}

const told = (message: Body["messages"][number]): boolean => String(message.content).includes("You are back at");

test("a sound one fails none", async () => {
  expect(await failing(adapter())).toEqual([]);
});

test("abandoned results shown to the model", async () => {
  const failed = await failing(
    adapter({
      tamper: ({ messages }, memory) => {
        if (!messages.some(told)) {
          memory.splice(0, memory.length, ...messages.filter(({ role }) => role === "tool"));
          return messages;
        }
        const known = new Set(messages.map(({ content }) => content));
        const leaked = memory.filter(({ content }) => !known.has(content));
        return [...messages, ...leaked.map(({ content }) => ({ role: "user", content: content ?? null }))];
      },
    }),
  );
  expect(failed).toContain("what was taken back is in no later request");
  expect(failed).not.toContain("the lesson is in every later request, once");
});

test("the lesson told twice, and not at all", async () => {
  const twice = await failing(
    adapter({ tamper: ({ messages }) => messages.flatMap((one) => (told(one) ? [one, one] : [one])) }),
  );
  expect(twice).toContain("the lesson is in every later request, once");
  expect(twice).not.toContain("what was taken back is in no later request");
  const none = await failing(
    adapter({
      tamper: ({ messages }) =>
        messages.map((one) =>
          told(one) ? { ...one, content: String(one.content).replace(/Lessons so far[\s\S]*?\n\n/, "") } : one,
        ),
    }),
  );
  expect(none).toContain("the lesson is in every later request, once");
  expect(none).not.toContain("a rewind in the run: files and conversation return, and the run goes on");
});

test("calls beside a rewind that run all the same", async () => {
  const failed = await failing(
    adapter({
      start: ({ tool, baseUrl, rewind, thread }) => {
        const eager = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
          const response = await globalThis.fetch(input, init);
          const reply = (await response.clone().json()) as {
            choices: { message: { tool_calls?: { function: { name: string; arguments: string } }[] } }[];
          };
          const calls = reply.choices?.[0]?.message.tool_calls ?? [];
          if (calls.some((one) => one.function.name === "rewind")) {
            for (const one of calls)
              if (one.function.name === tool.name) await tool.run(JSON.parse(one.function.arguments));
          }
          return response;
        };
        const openai = withRewind(
          new OpenAI({ apiKey: "none", baseURL: baseUrl, maxRetries: 0, fetch: eager }),
          rewind,
          { thread },
        ) as Client;
        const list: unknown[] = [];
        return { say: (text) => chatLoop(openai, (_name, args) => tool.run(args as never), text, list) };
      },
    }),
  );
  expect(failed.filter((name) => name.startsWith("calls sent together with a rewind do not run"))).toHaveLength(3);
  expect(failed).not.toContain("to the first decision of all");
});

test("a person's later message forgotten", async () => {
  const failed = await failing(
    adapter({
      tamper: ({ messages }) =>
        messages.some(told)
          ? messages.filter(({ role, content }) => role !== "user" || content !== "also do this")
          : messages,
    }),
  );
  expect(failed).toEqual(["a rewind past a later message of the person keeps that message"]);
});
