// A saver that fails once, and a person who goes on: files and conversation stay one pair.
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { afterEach, expect, it } from "vitest";
import {
  call,
  calls,
  durabilities,
  idBefore,
  makeGraph,
  onThread,
  openScene,
  run,
  type Scene,
  type State,
  start,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

/** Fails at the first state that suits. */
class FailsOnce extends MemorySaver {
  failed = false;
  readonly #suits: (messages: readonly BaseMessage[]) => boolean;

  constructor(suits: (messages: readonly BaseMessage[]) => boolean) {
    super();
    this.#suits = suits;
  }

  override async put(...given: Parameters<MemorySaver["put"]>): ReturnType<MemorySaver["put"]> {
    const { messages = [] } = given[1].channel_values as { messages?: BaseMessage[] };
    if (!this.failed && this.#suits(messages)) {
      this.failed = true;
      throw new Error("the saver's disk is gone");
    }
    return super.put(...given);
  }
}

/** The files that the conversation says were written. */
const written = ({ messages }: State): string[] =>
  messages
    .flatMap((message) => (AIMessage.isInstance(message) ? (message.tool_calls ?? []) : []))
    .filter(({ name }) => name === "write_file")
    .map(({ args }) => String(args.path))
    .sort();

it.each(durabilities)(
  "the state behind a tool, durability %s: its file stays where its result does",
  async (durability) => {
    scene = await openScene(
      (_request, all) =>
        all.includes("wrote two") ? { content: "both" } : calls(write(all.includes("wrote one") ? "two" : "one", "x")),
      { latencyMs: 60 },
    );
    const saver = new FailsOnce((messages) => messages.at(-1)?.getType() === "tool");
    const { app } = makeGraph(scene, { saver });
    const config = onThread("t1", { durability });
    await expect(run(app, start, config)).rejects.toThrow("the saver's disk is gone");
    const state = await run(app, null, config);
    expect(scene.files()).toEqual(["one", "two"]);
    expect(written(state)).toEqual(["one", "two"]);
  },
);

it.each(durabilities)(
  "the state behind the agent's rewind, durability %s: a new message finds the files of its conversation",
  async (durability) => {
    scene = await openScene(
      (_request, all) => {
        if (all.includes("next")) return { content: "as you say" };
        if (all.includes("Checkpoints, newest first"))
          return calls(call("rewind", { checkpoint: idBefore(all, "two"), lesson: "not two" }));
        if (all.includes("wrote two")) return calls(call("list_checkpoints", {}));
        return calls(write(all.includes("wrote one") ? "two" : "one", "x"));
      },
      { latencyMs: 60 },
    );
    const saver = new FailsOnce((messages) => messages.some((message) => message.text.includes("You are back at")));
    const { app } = makeGraph(scene, { saver });
    const config = onThread("t1", { durability });
    await expect(run(app, start, config)).rejects.toThrow("the saver's disk is gone");
    const state = await run(app, user("next"), config);
    expect(scene.files()).toEqual(written(state));
  },
);
