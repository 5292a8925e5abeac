// What the kernel's counters cost those who are counted: work of a sandbox with them and without, by turns.
import { performance } from "node:perf_hooks";
import type { Rewind } from "agentrewind";
import { makePlace } from "./place.ts";

export interface Work {
  readonly name: string;
  /** Milliseconds, of each round. */
  readonly without: number[];
  readonly counting: number[];
}

const works = {
  "a C build (40 files, make)": "make -s -C build clean && make -s -C build",
  "files unpacked and removed (5,000, tar)": "mkdir -p out && tar -xf tree.tar -C out && rm -rf out",
  "a walk that only makes calls (find /usr)": "find /usr -xdev -size +100M >/dev/null",
} as const;

const prepare = [
  "mkdir -p build tree",
  'for i in $(seq 40); do printf "#include <stdio.h>\\n#include <stdlib.h>\\nint f%d(int n) { return n * %d; }\\n" $i $i >build/f$i.c; done',
  "echo 'int main(void) { return 0; }' >build/main.c",
  'printf "OBJECTS = $(cd build; echo *.c | sed s/[.]c/.o/g)\\nprogram: \\$(OBJECTS)\\n\\tcc -o program \\$(OBJECTS)\\nclean:\\n\\trm -f program *.o\\n" >build/Makefile',
  "for i in $(seq 5000); do echo $i >tree/$i; done; tar -cf tree.tar tree",
].join(" && ");

/** One sandbox is open at a time: in the other arm's time the programs are not in the kernel. */
export async function counted(rounds: number): Promise<Work[]> {
  const places = { without: makePlace("auto"), counting: makePlace("ebpf") };
  const found = Object.keys(works).map((name) => ({ name, without: [] as number[], counting: [] as number[] }));
  const run = async ({ environment }: Rewind, line: string): Promise<number> => {
    const begun = performance.now();
    const { exitCode, stderr } = await environment.exec(line);
    if (exitCode !== 0) throw new Error(`${line}: ${stderr}`);
    return performance.now() - begun;
  };
  const inPlace = async (arm: keyof typeof places, work: (rewind: Rewind) => Promise<void>): Promise<void> => {
    const rewind = await places[arm].open();
    try {
      // The first times are those of a cold cache.
      for (const line of Object.values(works)) await run(rewind, `[ ! -e tree.tar ] || (${line})`);
      await work(rewind);
    } finally {
      await rewind.close();
    }
  };
  const arms = ["without", "counting"] as const;
  try {
    for (const arm of arms) await inPlace(arm, async (rewind) => void (await run(rewind, prepare)));
    for (let round = 0; round < rounds; round++)
      for (const arm of round % 2 === 0 ? arms : arms.toReversed())
        await inPlace(arm, async (rewind) => {
          for (const work of found) work[arm].push(await run(rewind, works[work.name as keyof typeof works]));
        });
    return found;
  } finally {
    for (const arm of arms) places[arm].remove();
  }
}
