// Names and paths are bytes (F-8). Inside they are strings with one byte a character, which compare as the bytes do; people see the display form (F-14).
import { RewindError } from "../../errors.ts";

/** Raw bytes as a latin1 string, components joined by "/", "" for the root. */
export type RawPath = string;

export const toBytes = (path: RawPath): Buffer => Buffer.from(path, "latin1");
export const fromBytes = (bytes: Uint8Array): RawPath =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
export const join = (folder: RawPath, name: RawPath): RawPath => (folder === "" ? name : `${folder}/${name}`);

export function parentOf(path: RawPath): RawPath {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "" : path.slice(0, slash);
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const escapes: Record<string, string> = { n: "\n", t: "\t", '"': '"', "\\": "\\" };

function decode(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

/** Control and format characters (escape sequences, turned direction, hidden text) but joiners, line separators, and what the quoted form itself uses. */
const unsafe = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029"\\]/u;
const unsafeAll = new RegExp(unsafe, "gu");

/** What is the same in both forms. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** The form that people and programs see; `fromDisplay` brings the bytes back. */
export function display(path: RawPath): string {
  if (plain.test(path)) return path;
  const text = decode(toBytes(path));
  if (text !== undefined && !unsafe.test(text)) return text;
  if (text === undefined) return `"${path.replace(/[^\x20-\x7e]|["\\]/g, escapeByte)}"`;
  return `"${text.replace(unsafeAll, escapeChar)}"`;
}

/** Of a name that is not UTF-8: each character is a byte. */
const escapeByte = (byte: string): string =>
  byte >= "\x80" ? `\\x${byte.charCodeAt(0).toString(16)}` : escapeChar(byte);

function escapeChar(char: string): string {
  if (char === "\n") return "\\n";
  if (char === "\t") return "\\t";
  if (char === '"' || char === "\\") return `\\${char}`;
  return [...Buffer.from(char, "utf8")].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}

export function fromDisplay(shown: string): RawPath {
  if (!(shown.length >= 2 && shown.startsWith('"') && shown.endsWith('"')))
    return fromBytes(Buffer.from(shown, "utf8"));
  const parts = shown.slice(1, -1).split(/(\\x[0-9a-f]{2}|\\[nt"\\])/);
  return parts
    .map((part) => {
      if (part.startsWith("\\x")) return String.fromCharCode(Number.parseInt(part.slice(2), 16));
      if (part.startsWith("\\")) return escapes[part[1] as string] as string;
      return fromBytes(Buffer.from(part, "utf8"));
    })
    .join("");
}

/** A path given by a caller, relative to the workspace, as raw bytes. @throws PATH_OUTSIDE */
export function callerPath(path: string): RawPath {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path.startsWith("/") || parts.includes("..")) {
    throw new RewindError("PATH_OUTSIDE", `${display(fromBytes(Buffer.from(path)))} is not inside the workspace.`, {
      hint: "Give a path relative to the workspace, without `..`.",
    });
  }
  return fromBytes(Buffer.from(parts.join("/"), "utf8"));
}
