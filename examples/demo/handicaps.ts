// Two ways to cripple a rewind, for the tests: each shows that one half of the pair is not enough.
import type { Environment, FileChanges } from "agentrewind";
import { createMiddleware, HumanMessage } from "langchain";

/** Keeps the lessons from the model: every text in `forgotten()` is cut out of what the model is sent. */
export function forgetLessons(forgotten: () => readonly string[]) {
  return createMiddleware({
    name: "ForgetLessons",
    wrapModelCall: (request, handler) => {
      const messages = request.messages.map((message) => {
        if (!HumanMessage.isInstance(message)) return message;
        const content = forgotten().reduce((text, lesson) => text.replaceAll(lesson, "(nothing)"), message.text);
        return content === message.text ? message : new HumanMessage({ content });
      });
      return handler({ ...request, messages });
    },
  });
}

const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

/** The same environment, but a restore does nothing and claims success. */
export function neverRestores(environment: Environment): Environment {
  return new Proxy(environment, {
    get(target, name) {
      if (name === "restore") return async () => ({ generation: 0, restored: nothing, notRestored: [] });
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
