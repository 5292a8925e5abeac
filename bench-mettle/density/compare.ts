// Checkpoints must not change what the agents do: what their tasks leave is compared with the same tasks without.
import type { TaskLine } from "./block.ts";
import type { Block } from "./cells.ts";

/** A sentence for each task that left something else than under the first arm, failed its verifier, or has checkpoints that cannot be restored. */
export function differences(blocks: readonly Block[]): string[] {
  return blocks.flatMap((block) => {
    const { cell, arm, round } = block;
    const plain = sameTasks(blocks, block, "none");
    return block.tasks.flatMap((task) => {
      const name = `${cell}, ${arm}, round ${round + 1}, agent ${task.agent} (${task.className})`;
      const other = plain.get(task.agent);
      const differs = other === undefined ? undefined : difference(task, other);
      return [
        ...(differs === undefined ? [] : [`${name}: ${differs}`]),
        ...(task.left?.verdicts ?? []).filter(({ pass }) => !pass).map(({ trace, why }) => `${name}: ${trace}: ${why}`),
        ...task.turns.flatMap(({ lost, problems }, turn) =>
          lost ? [`${name}: the checkpoint of turn ${turn} cannot be restored: ${problems.join("; ")}`] : [],
        ),
      ];
    });
  });
}

/** By the agents' numbers, what the same tasks did under that arm. */
export function sameTasks(
  blocks: readonly Block[],
  { cell, round }: Block,
  arm: string,
): ReadonlyMap<number, TaskLine> {
  const found = blocks.find((one) => one.cell === cell && one.round === round && one.arm === arm);
  return new Map(found?.tasks.map((task) => [task.agent, task]));
}

function difference(task: TaskLine, plain: TaskLine): string | undefined {
  if (task.left === null || plain.left === null) return undefined;
  if (task.failed !== plain.failed)
    return `${task.failed} calls of tools failed, ${plain.failed} did without checkpoints`;
  const lines = task.left.state.split("\n");
  const others = plain.left.state.split("\n");
  const at = lines.findIndex((line, index) => line !== others[index]);
  if (at < 0 && lines.length === others.length) return undefined;
  const said = (line: string | undefined): string => JSON.stringify(line ?? null);
  const where = at < 0 ? lines.length : at;
  return `left ${said(lines[where])}, without checkpoints ${said(others[where])}`;
}
