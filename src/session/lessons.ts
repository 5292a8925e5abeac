// Lessons: bounded, with secrets masked, and listed newest first.
import { RewindError } from "../errors.ts";
import type { LessonRow } from "../store/rows.ts";
import type { Lesson } from "./types.ts";

export const lessonLimit = 2_000;
/** Characters of all lessons in one message. */
export const lessonsLimit = 8_000;

const secrets: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{16,}/g,
  /\b(?:ghp|gho|ghu|ghs|ghr|github_pat)_[A-Za-z0-9_]{20,}/g,
  /\bglpat-[A-Za-z0-9_-]{20,}/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[A-Za-z0-9_-]{35}/g,
  /\bey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /(?<=\bBearer\s)[A-Za-z0-9._~+/-]{16,}=*/gi,
  /(?<=:\/\/[^\s/:@]{1,64}:)[^\s/@]{1,256}(?=@)/g,
  /(?<=\b(?:password|passwd|secret|token|api[_-]?key)["']?\s*[=:]\s*["']?)[^\s"',;]{6,}/gi,
];

/** Replaces what looks like a credential by "[masked]". */
export function maskSecrets(text: string): string {
  return secrets.reduce((masked, pattern) => masked.replace(pattern, "[masked]"), text);
}

export function shorten(text: string, limit: number): string {
  const one = text.trim();
  return one.length <= limit ? one : `${one.slice(0, limit - 1).trimEnd()}…`;
}

/** The lesson as it is stored. @throws LESSON_EMPTY */
export function cleanLesson(text: string): string {
  const clean = shorten(maskSecrets(text), lessonLimit);
  if (clean !== "") return clean;
  throw new RewindError("LESSON_EMPTY", "The lesson is empty.", {
    hint: "Say what was tried, what proved false, and what to do instead.",
  });
}

export const toLesson = (row: LessonRow): Lesson => ({
  id: row.id,
  text: row.text,
  from: `c${row.from_seq}`,
  to: `c${row.to_seq}`,
  createdAt: row.created_at,
});

/** Newest first, without those in `known` and without repetitions. */
export function lessonsToTell(rows: readonly LessonRow[], known: ReadonlySet<number>): LessonRow[] {
  const told = new Set(rows.filter((row) => known.has(row.id)).map((row) => row.text));
  const fresh: LessonRow[] = [];
  for (const row of rows) {
    if (told.has(row.text)) continue;
    told.add(row.text);
    fresh.push(row);
  }
  return fresh;
}
