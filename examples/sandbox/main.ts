// node -C agentrewind-source --import tsx examples/sandbox/main.ts (Linux, root)
import { runExample } from "./run.ts";

const run = await runExample();
for (const text of run.told) console.log(`> ${text.split("\n").slice(0, 3).join("\n  ")}`);
console.log(`answer: ${run.answer}\nthe service goes on: ${run.next}`);
for (const lesson of run.lessons) console.log(`lesson: ${lesson}`);
