// Traces over a small repository with a mistake in it: looked at, changed, tested. No program stays behind.
import { act, bash, edit, look, read, type Trace } from "./trace.ts";

export interface Repository {
  readonly id: string;
  readonly family: string;
  readonly follows?: string;
  readonly files: Readonly<Record<string, string>>;
  /** Where the mistake is. */
  readonly source: string;
  /** The repository's own test. */
  readonly test: string;
  /** One after the other: what is said, the file, what stands there and what shall. */
  readonly edits: readonly (readonly [say: string, path: string, from: string, to: string])[];
  /** A script for bash that the agent never sees. */
  readonly hidden: string;
}

export const repository = ({ source, test, edits, hidden, ...more }: Repository): Trace => ({
  ...more,
  kind: "files",
  turns: [
    look("What is there?", bash("find . -type f | sort")),
    look("What fails?", bash(test)),
    look("The source.", read(source)),
    ...edits.flatMap(([say, path, from, to], index) => [
      act(say, edit(path, from, to)),
      ...(index === edits.length - 1 ? [] : [look("Does that help?", bash(test))]),
    ]),
    look("The tests once more.", bash(test)),
    act("What was done.", bash(`echo ${more.id} >> CHANGES`)),
  ],
  verify: `{ ${hidden}\n} || { echo "the hidden test fails"; exit 1; }\ngrep -qx ${more.id} CHANGES || { echo "not in CHANGES"; exit 1; }`,
});

/** A hidden test in Python that only says whether all holds. */
export const python = (lines: string): string => `PYTHONDONTWRITEBYTECODE=1 python3 - <<'END'\n${lines}\nEND`;
export const node = (lines: string): string => `node --input-type=commonjs - <<'END'\n${lines}\nEND`;
/** A C program beside the sources. */
export const compiled = (sources: string, lines: string): string =>
  `d=$(mktemp -d) && cat > $d/hidden.c <<'END'\n${lines}\nEND\ncc -I. -o $d/hidden $d/hidden.c ${sources} -lm && $d/hidden && rm -r $d`;
