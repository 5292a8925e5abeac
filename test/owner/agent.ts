// A process of its own: begins or resumes an agent of the kind that it is given, as its user would, and does what it is told where the conversation is refused.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isRewindError, type Rewind, type RewindError } from "agentrewind";
import { APIError } from "openai";
import { graphOf } from "./graphs.ts";
import { loopOf } from "./loops.ts";
import { type Given, openOwner } from "./owner.ts";

const given = JSON.parse(process.argv[2] as string) as Given;
const owner = await openOwner(given);
const run = /^(langchain|langgraph|deepagents|nodes)/.test(given.kind) ? graphOf(owner) : loopOf(owner);

type Refusal = Pick<RewindError, "code" | "message" | "hint" | "details">;

/** OpenAI's client makes an error of its own of it, with everything in one message. */
function refusalIn(error: unknown): Refusal {
  for (let one = error as Error | undefined; one !== undefined; one = one.cause as Error | undefined) {
    if (isRewindError(one)) return one;
    if (!(one instanceof APIError) || one.type !== "agentrewind") continue;
    const { message, details } = one.error as Refusal;
    return { code: one.code as Refusal["code"], message, hint: message.slice(message.indexOf("Rewind the")), details };
  }
  throw error;
}

/** As the hint says. */
async function follow(rewind: Rewind, { hint, details }: Refusal): Promise<void> {
  const thread = rewind.thread("t");
  const { files } = details as { files: string | null };
  const [, to = "", how = ""] = /Rewind the thread to (c\d+)([^:]*):/.exec(hint ?? "") ?? [];
  if (given.choice === "stay") await thread.checkpoint();
  else if (given.choice === "files") await thread.rewind({ to: files as string, scope: "environment" });
  else {
    const { context, message } = await thread.rewind({
      to,
      ...(how.includes("crossEffects") ? { crossEffects: true } : {}),
      ...(how.includes('"context"') ? { scope: "context" } : {}),
    });
    // Nobody else tells this loop.
    if (given.kind.startsWith("plain"))
      writeFileSync(
        join(given.base, "list.json"),
        JSON.stringify([...context.messages, { role: "user", content: message }]),
      );
  }
}

let refused: Refusal | undefined;
try {
  await run();
} catch (error) {
  refused = refusalIn(error);
  if (given.choice !== undefined) {
    await follow(owner.rewind, refused);
    await run();
  }
}
const { stdout } = await owner.rewind.environment.exec("cat log.txt");
const findings = await owner.rewind.verify();
await owner.rewind.close();
const told = refused === undefined ? null : { code: refused.code, message: refused.message, hint: refused.hint };
console.log(`result ${JSON.stringify({ refused: told, log: stdout.trim().split("\n"), findings })}`);
process.exit();
