// Binds the tools to a workspace: arguments checked, writes one after the other, nothing done or told behind a rewind.
import { z } from "zod";
import { isRewindError, RewindError } from "../errors.ts";
import { refusalText } from "../session/texts.ts";
import { type BashOptions, bashTool } from "./bash.ts";
import { editTool } from "./edit.ts";
import { noKnowledge, ReadGuard } from "./guard.ts";
import { listTool } from "./list.ts";
import { readTool } from "./read.ts";
import type { Conversation, EnvironmentTool, ToolAnswer, ToolHost, ToolKind, Work } from "./tool.ts";
import { writeTool } from "./write.ts";

export type EnvironmentToolName = "bash" | "read" | "write" | "edit" | "list";

export interface EnvironmentToolOptions {
  /**
   * The conversation that the calls serve, for the read guard. Default: the thread whose tool runs, where the adapter enters tools; elsewhere the one
   * most recently active. A subagent without a thread of its own counts as part of the conversation whose tool it is.
   */
  readonly thread?: string;
  /** Which tools. Default: all. */
  readonly tools?: readonly EnvironmentToolName[];
  /** Characters of one result. Default 30,000. */
  readonly outputLimit?: number;
  /** Refuses to change files that the conversation does not know as they are. Default true. */
  readonly readGuard?: boolean;
  readonly bash?: BashOptions;
}

const smallestLimit = 500;

/**
 * The tools `bash`, `read`, `write`, `edit` and `list` over a workspace's environment, for no framework in particular; the adapters have them in their framework's form.
 * @throws BAD_ARGUMENT
 */
export function bindTools(host: ToolHost, options: EnvironmentToolOptions = {}): EnvironmentTool[] {
  const { outputLimit = 30_000, readGuard = true } = options;
  if (!(outputLimit >= smallestLimit)) {
    throw new RewindError("BAD_ARGUMENT", `outputLimit is ${outputLimit}; it has to be at least ${smallestLimit}.`);
  }
  const kinds = [
    bashTool(options.bash ?? {}, host.environment.capabilities.shell === true),
    readTool,
    writeTool,
    editTool,
    listTool,
  ] as unknown as ToolKind[];
  const unknown = options.tools?.find((name) => !kinds.some((kind) => kind.name === name));
  if (unknown !== undefined) {
    throw new RewindError("BAD_ARGUMENT", `There is no tool "${unknown}".`, {
      hint: `There are ${kinds.map((kind) => kind.name).join(", ")}.`,
    });
  }
  const guard = new ReadGuard();
  let lastWrite: Promise<unknown> = Promise.resolve();

  const conversationOf = (): Conversation => {
    const inside = host.running();
    if (options.thread !== undefined) return host.thread(options.thread);
    return inside ?? host.thread(host.threads()[0] ?? "default");
  };

  async function act(kind: ToolKind, args: Record<string, unknown>, signal: AbortSignal | undefined): Promise<string> {
    const conversation = conversationOf();
    const { epoch } = conversation;
    const requireSame = (): void => {
      host.running();
      if (conversation.epoch !== epoch) throw overtaken();
    };
    const work: Work = {
      environment: host.environment,
      conversation: conversation.name,
      signal,
      limit: outputLimit,
      knowledge: readGuard ? guard.knowledge(conversation) : noKnowledge,
      settled: () => conversation.settled(),
      async write(path, data) {
        requireSame();
        await host.environment.writeFile(path, data);
      },
    };
    const text = await kind.act(args, work);
    signal?.throwIfAborted();
    requireSame();
    return text;
  }

  const bind = (kind: ToolKind): EnvironmentTool => ({
    name: kind.name,
    description: kind.description,
    schema: kind.schema,
    async run(args, { signal } = {}) {
      signal?.throwIfAborted();
      try {
        const parsed = kind.schema.safeParse(args);
        if (!parsed.success) throw badArguments(kind.name, parsed.error);
        const once = (): Promise<string> => act(kind, parsed.data, signal);
        if (kind.writes !== true) return { text: await once() };
        const mine = lastWrite.then(once);
        lastWrite = mine.catch(() => {});
        return { text: await mine };
      } catch (error) {
        signal?.throwIfAborted();
        return failed(error);
      }
    },
  });
  return kinds.filter((kind) => options.tools?.includes(kind.name as EnvironmentToolName) ?? true).map(bind);
}

function failed(cause: unknown): ToolAnswer {
  const error = isRewindError(cause)
    ? cause
    : new RewindError("COMMAND_FAILED", cause instanceof Error ? cause.message : String(cause), { cause });
  return { text: refusalText(error), error };
}

const overtaken = (): RewindError =>
  new RewindError("STALE_EPOCH", "The files were rewound while this ran; what it gave is of no use any more.", {
    hint: "Look at the files as they are now, then go on.",
  });

function badArguments(name: string, error: z.ZodError): RewindError {
  return new RewindError("BAD_ARGUMENT", `The arguments of ${name} do not fit: ${z.prettifyError(error)}`, {
    hint: "Send the call again with arguments that fit.",
  });
}
