// Lessons that are too long to tell are summed up, where the program says how.
import type { LessonRow, NewLesson } from "../store/rows.ts";
import type { SessionDeps } from "./deps.ts";
import { lessonsLimit, toLesson } from "./lessons.ts";
import { maskSecrets, shorten } from "./mask.ts";

/**
 * The sum of `told`, newest first, where all of them together with the new one are longer than one message takes; else null. A summary that fails is
 * no reason to fail a rewind: the newest are told then, and the others counted.
 */
export async function summarizeLessons(
  { summarizeLessons: summarize }: SessionDeps,
  lesson: NewLesson | null,
  told: readonly LessonRow[],
): Promise<(NewLesson & { readonly covers: readonly number[] }) | null> {
  const size = told.reduce((sum, row) => sum + row.text.length, lesson?.text.length ?? 0);
  if (summarize === undefined || told.length < 2 || size <= lessonsLimit) return null;
  try {
    const text = shorten(maskSecrets(String(await summarize(told.map(toLesson)))), lessonsLimit / 2);
    return text === "" ? null : { text, covers: told.map((row) => row.id).sort((a, b) => a - b) };
  } catch (error) {
    process.emitWarning(`The summary of lessons failed: ${(error as Error).message}`, "AgentRewindWarning");
    return null;
  }
}
