// The lines that differ between two texts, by longest common subsequence; for files of a few hundred lines.

export interface LineChange {
  readonly sign: "-" | "+";
  readonly line: string;
}

export function changedLines(before: string, after: string): LineChange[] {
  const a = before.split("\n");
  const b = after.split("\n");
  const width = b.length + 1;
  // common[i * width + j]: length of the longest common subsequence of a from i and b from j.
  const common = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const changes: LineChange[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) {
      changes.push({ sign: "-", line: a[i++] ?? "" });
    } else {
      changes.push({ sign: "+", line: b[j++] ?? "" });
    }
  }
  return changes;
}
