import { runTrace } from "./run.ts";
import { killOf } from "./plan.ts";
import { policies, unkilled } from "./policies.ts";
import { traces } from "./traces/index.ts";
const [id, names, seed] = process.argv.slice(2);
const t = traces.find((x) => x.id === id)!;
for (const p of [...unkilled, ...policies].filter((p) => !names || names.split(",").includes(p.name)))
  console.log(JSON.stringify(await runTrace(t, p, Number(seed ?? 1), unkilled.includes(p) ? null : killOf(t, Number(seed ?? 1)), 0.02)));
