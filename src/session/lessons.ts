// Lessons: plain or in parts, bounded, with secrets masked, told once, and listed newest first.
import { RewindError } from "../errors.ts";
import type { LessonRow, NewLesson } from "../store/rows.ts";
import { maskSecrets, shorten } from "./mask.ts";
import type { Lesson, LessonParts } from "./types.ts";
import { branchId } from "./views.ts";

export const lessonLimit = 2_000;
const partLimit = 380;
/** Characters of all lessons in one message. */
export const lessonsLimit = 8_000;

/** Each part as it is told, in this order. */
const partTitles: Readonly<Record<keyof LessonParts, string>> = {
  attempted: "Tried",
  disproved: "Proved false",
  evidence: "Evidence",
  consequence: "Consequence",
  instead: "Instead",
};

/** The lesson as it is stored. @throws LESSON_EMPTY */
export function cleanLesson(lesson: string | LessonParts): NewLesson {
  if (typeof lesson === "string") return { text: requireText(shorten(maskSecrets(lesson), lessonLimit)) };
  const parts: Partial<Record<keyof LessonParts, string>> = {};
  for (const name of Object.keys(partTitles) as (keyof LessonParts)[]) {
    const text = shorten(maskSecrets(`${lesson[name] ?? ""}`).replace(/\s+/g, " "), partLimit);
    if (text !== "") parts[name] = text;
  }
  const said = Object.entries(parts).map(([name, text]) => `${partTitles[name as keyof LessonParts]}: ${ended(text)}`);
  return { text: requireText(said.join(" ")), parts };
}

const ended = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`);

function requireText(text: string): string {
  if (text !== "") return text;
  throw new RewindError("LESSON_EMPTY", "The lesson is empty.", {
    hint: "Say what was tried, what proved false, and what to do instead.",
  });
}

export const toLesson = (row: LessonRow): Lesson => ({
  id: row.id,
  text: row.text,
  parts: row.parts === null ? null : (JSON.parse(row.parts) as LessonParts),
  covers: row.covers === null ? [] : (JSON.parse(row.covers) as number[]),
  rewind: row.rewind,
  branch: row.branch === null ? null : branchId(row.branch),
  from: `c${row.from_seq}`,
  to: `c${row.to_seq}`,
  createdAt: row.created_at,
});

/** Two lessons that differ in spaces, case and the last full stop only are one. */
const sameness = (text: string): string =>
  text
    .toLowerCase()
    .replace(/\s+/g, " ")
    .replace(/[.!\s]+$/, "");

export const isSameLesson = (a: string, b: string): boolean => sameness(a) === sameness(b);

/** Newest first: each once, and none that another one sums up. */
export function distinctLessons(rows: readonly LessonRow[]): LessonRow[] {
  const covered = new Set(rows.flatMap((row) => (row.covers === null ? [] : (JSON.parse(row.covers) as number[]))));
  const seen = new Set<string>();
  return rows.filter((row) => {
    const key = sameness(row.text);
    if (covered.has(row.id) || seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Newest first, without those in `known`, those that `known` ones repeat or sum up, and repetitions. */
export function lessonsToTell(rows: readonly LessonRow[], known: ReadonlySet<number>): LessonRow[] {
  const told = new Set(rows.filter((row) => known.has(row.id)).map((row) => sameness(row.text)));
  return distinctLessons(rows).filter((row) => !known.has(row.id) && !told.has(sameness(row.text)));
}

/** As many of the newest as one message takes. */
export function boundedLessons<T extends Pick<Lesson, "text">>(lessons: readonly T[]): T[] {
  const kept: T[] = [];
  let size = 0;
  for (const lesson of lessons) {
    size += lesson.text.length;
    if (kept.length > 0 && size > lessonsLimit) break;
    kept.push(lesson);
  }
  return kept;
}
