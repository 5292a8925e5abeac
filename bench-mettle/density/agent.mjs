// A process of agents, each in a sandbox of its own: told over IPC what to do, it opens them, waits, does all tasks beside each other, and says what each turn waited and what was left.
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { openRewind } from "agentrewind";
import { toolsOver, verified } from "../crash/tools.mjs";

/** A busy host may take its time: no command may be cut off in one arm and not in another. */
const commandMs = 180_000;
/** Of a tool's answer, what the conversation keeps. */
const keptCharacters = 2_000;

const received = (type) =>
  new Promise((resolve) => {
    process.on("message", (message) => message.type === type && resolve(message));
  });
const tell = (type, more = {}) => process.send({ type, ...more });
const [begin, go, end] = ["begin", "go", "end"].map(received);

const { agents, store, open, records } = await begin;
const opened = [];
for (const { index, workspace, task } of agents) {
  const rewind = await openRewind({ workspace, store, ...open });
  await rewind.environment.exec("BENCH_LIFE=first");
  const tools = toolsOver(rewind.environment, commandMs);
  await answers({ tools }, task.before);
  opened.push({ index, task, rewind, tools });
}
tell("ready");
await go;

async function answers({ tools }, calls) {
  const made = [];
  for (const { tool, args } of calls) made.push(await tools[tool](args));
  return made;
}

/** The loop of an agent, without or with pairs. */
async function run(agent) {
  const { task, rewind, index } = agent;
  const thread = records ? rewind.thread("agent") : undefined;
  const messages = [{ role: "user", text: "Do the task." }];
  const turns = [];
  let failed = 0;
  let actions = [];
  let before;
  await sleep(task.startMs);
  const start = performance.now();
  for (const [at, { latencyMs, calls }] of task.turns.entries()) {
    const begun = performance.now();
    const turn = await thread?.beginTurn(
      { messages: [...messages] },
      { anchor: `turn ${at}`, activity: { said: "", actions } },
    );
    const asked = performance.now();
    await sleep(latencyMs);
    const answered = performance.now();
    const told = calls.map(({ tool, args }) => ({ tool, input: args }));
    const checkpoint = await turn?.gate({ tools: calls.length > 0, calls: told });
    const waitedMs = asked - begun + (performance.now() - answered);
    if (checkpoint !== undefined) {
      turns.push(recorded(checkpoint, before, waitedMs));
      before = checkpoint.environment;
    }
    const results = await answers(agent, calls);
    failed += results.filter((text) => text.startsWith("Failed: ")).length;
    messages.push(
      { role: "assistant", calls: told },
      ...results.map((text) => ({ role: "tool", text: text.slice(0, keptCharacters) })),
    );
    actions = told.map(({ tool, input }, index) => ({
      tool,
      input: JSON.stringify(input),
      output: results[index].slice(0, keptCharacters),
      failed: false,
    }));
  }
  const taskMs = performance.now() - start;
  if (records) await rewind.durable();
  tell("done", { index, taskMs, durableMs: performance.now() - start - taskMs, turns, failed });
}

function recorded({ environment, timings, state, problems }, before, waitedMs) {
  const kept = (half) => before !== undefined && before[half] === environment[half];
  return {
    ...timings,
    waitedMs,
    filesKept: kept("files"),
    processesKept: kept("processes"),
    lost: state === "not-restorable",
    problems: problems.map(({ path, reason }) => `${path}: ${reason}`),
  };
}

const loop = monitorEventLoopDelay({ resolution: 5 });
loop.enable();
await Promise.all(opened.map(run));
loop.disable();
tell("idle", {
  rssKiB: process.resourceUsage().maxRSS,
  loopMs: { p99: loop.percentile(99) / 1e6, max: loop.max / 1e6 },
});
await end;

/** What a task has left, and whether its shell is the one that it began with. */
async function left({ index, task, rewind: { environment } }) {
  const life = await environment.exec('echo "$BENCH_LIFE"', { timeoutMs: commandMs });
  const state = await environment.exec(["bash", "-c", task.state], { timeoutMs: commandMs });
  const verdicts = [];
  for (const { trace, folder, verify } of task.finished) {
    const { pass, why } = await verified(environment, `cd ${folder}\n${verify}`, commandMs);
    verdicts.push({ trace, pass, why });
  }
  tell("left", {
    index,
    sameLife: life.stdout.trim() === "first",
    state: `${state.stdout}[${state.exitCode}]`,
    verdicts,
  });
}
for (const one of opened) await left(one);
tell("over");
