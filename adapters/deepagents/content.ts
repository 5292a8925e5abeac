// A file's bytes as deepagents reads them: a window of lines for text, bytes for media that a model may look at.
import { extname } from "node:path";
import type { ReadResult } from "deepagents";

/** What deepagents hands to the model as it is. */
const media: Record<string, string> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".pdf": "application/pdf",
  ".mp3": "audio/mpeg",
  ".wav": "audio/wav",
  ".mp4": "video/mp4",
};
/** deepagents' own words for it; it knows them again. */
const emptyFile = "System reminder: File exists but has empty contents";

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Undefined for a file that is not UTF-8. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

export const mediaType = (path: string): string | undefined => media[extname(path).toLowerCase()];

/** @param offset lines before the window, from 0 */
export function readWindow(path: string, bytes: Uint8Array, offset: number, limit: number): ReadResult {
  const text = textOf(bytes);
  const mimeType = mediaType(path);
  if (text === undefined && mimeType !== undefined) return { content: bytes, mimeType };
  if (text === undefined) {
    return { error: `'${path}' is a binary file of ${bytes.byteLength} bytes; use execute to look at it.` };
  }
  // Said of every text, or deepagents would go by the name's ending.
  const plain = { mimeType: "text/plain" };
  if (text === "") return { ...plain, content: emptyFile };
  const lines = text.split("\n");
  const totalLines = lines.at(-1) === "" ? lines.length - 1 : lines.length;
  const start = wholeNumber(offset);
  const end = Math.min(start + wholeNumber(limit), totalLines);
  if (start >= totalLines) return { error: `Line offset ${start} exceeds file length (${totalLines} lines)` };
  const content = lines.slice(start, end).join("\n");
  if (end <= start) return { ...plain, content };
  return {
    ...plain,
    content,
    totalLines,
    startLine: start + 1,
    endLine: end,
    ...(end < totalLines ? { nextOffset: end } : {}),
  };
}

const wholeNumber = (given: number): number => (Number.isFinite(given) ? Math.max(0, Math.floor(given)) : 0);
