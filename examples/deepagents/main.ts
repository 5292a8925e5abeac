// node -C agentrewind-source --import tsx examples/deepagents/main.ts
import { runExample } from "./run.ts";

const run = await runExample();
console.log(`before:\n${run.before}\nafter:\n${run.after}`);
for (const { id, parent, active } of run.checkpoints) {
  console.log(`${id} behind ${parent ?? "nothing"}${active ? "" : ", abandoned"}`);
}
for (const lesson of run.lessons) console.log(`lesson: ${lesson}`);
console.log(`answer: ${run.answer}`);
