// The agent of the workflow: a model behind HTTP, and one tool whose output is large.
import type { Environment } from "agentrewind";
import type { Activity, Message } from "./workflow.ts";

export interface AgentOptions {
  readonly environment: Environment;
  /** Of an OpenAI-compatible server. */
  readonly baseUrl: string;
  readonly outputBytes: number;
  /** How many of the newest messages the model is sent, besides the task; the workflow keeps them all. */
  readonly window: number;
}

/** The model says "turn N" as long as there is work; the tool notes it in the workspace and prints a long report. */
export function makeActivity({ environment, baseUrl, outputBytes, window }: AgentOptions): Activity {
  return async (turn, messages) => {
    const [task, ...rest] = messages;
    const said = await ask(baseUrl, turn, task === undefined ? [] : [task, ...rest.slice(-window)]);
    if (said === "done") return null;
    const { stdout } = await environment.exec(
      `echo "$TURN" >> ledger.txt; yes "report of $TURN" | head -c ${outputBytes}`,
      { env: { TURN: said } },
    );
    return [
      { role: "assistant", content: said },
      { role: "tool", content: stdout },
    ];
  };
}

async function ask(baseUrl: string, turn: number, messages: readonly Message[]): Promise<string> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer none" },
    body: JSON.stringify({
      model: "scripted",
      messages: [
        ...messages.map(({ role, content }) => ({ role: role === "tool" ? "user" : role, content })),
        { role: "user", content: `Go on with turn ${turn}.` },
      ],
    }),
  });
  const reply = (await response.json()) as {
    choices?: { message: { content: string } }[];
    error?: { message: string };
  };
  if (reply.choices?.[0] === undefined) throw new Error(`The model did not answer: ${reply.error?.message}`);
  return reply.choices[0].message.content;
}
