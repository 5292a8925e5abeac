// Which entries of two versions of a caller's list are the same, found by what they are and not by where they stand.

/** Pairs of positions, both rising: `[in before, in after]`. */
export type Matches = readonly (readonly [number, number])[];

/**
 * Names that occur once in both lists are matched first (the longest run of them that keeps its order); equal names between two of those from the back, since
 * lists grow at their end and are cut at their beginning. Linear but for a sort.
 */
export function matchLists(before: readonly string[], after: readonly string[]): Matches {
  const matches: [number, number][] = [];
  const shorter = Math.min(before.length, after.length);
  let same = 0;
  while (same < shorter && before[same] === after[same]) same++;
  if (same === shorter) return Array.from({ length: same }, (_, at) => [at, at] as const);
  const fixed = inOrder(uniquePairs(before, after));
  let [left, right] = [0, 0];
  for (const [i, j] of [...fixed, [before.length, after.length] as const]) {
    matches.push(...matchGap(before, after, left, i, right, j));
    if (i < before.length || j < after.length) matches.push([i, j]);
    left = i + 1;
    right = j + 1;
  }
  return matches;
}

/** In the order of `after`. */
function uniquePairs(before: readonly string[], after: readonly string[]): [number, number][] {
  const positions = (list: readonly string[]): Map<string, number> => {
    const found = new Map<string, number>();
    for (const [at, name] of list.entries()) found.set(name, found.has(name) ? -1 : at);
    return found;
  };
  const left = positions(before);
  const pairs: [number, number][] = [];
  for (const [name, j] of positions(after)) {
    const i = left.get(name);
    if (j >= 0 && i !== undefined && i >= 0) pairs.push([i, j]);
  }
  return pairs.sort((a, b) => a[1] - b[1]);
}

/** The longest subsequence whose first numbers rise (patience sorting). */
function inOrder(pairs: readonly [number, number][]): [number, number][] {
  const tails: number[] = [];
  const previous: number[] = [];
  for (const [at, [i]] of pairs.entries()) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[tails[middle] as number] as [number, number])[0] < i) low = middle + 1;
      else high = middle;
    }
    previous[at] = low === 0 ? -1 : (tails[low - 1] as number);
    tails[low] = at;
  }
  const chosen: [number, number][] = [];
  for (let at = tails.at(-1) ?? -1; at >= 0; at = previous[at] as number) chosen.push(pairs[at] as [number, number]);
  return chosen.reverse();
}

function matchGap(
  before: readonly string[],
  after: readonly string[],
  left: number,
  leftEnd: number,
  right: number,
  rightEnd: number,
): [number, number][] {
  const found: [number, number][] = [];
  const places = new Map<string, number[]>();
  for (let i = left; i < leftEnd; i++) {
    const name = before[i] as string;
    const known = places.get(name);
    if (known === undefined) places.set(name, [i]);
    else known.push(i);
  }
  let limit = leftEnd;
  for (let j = rightEnd - 1; j >= right; j--) {
    const known = places.get(after[j] as string);
    while (known !== undefined && (known.at(-1) ?? -1) >= limit) known.pop();
    const i = known?.pop();
    if (i === undefined) continue;
    found.push([i, j]);
    limit = i;
  }
  return found.reverse();
}
