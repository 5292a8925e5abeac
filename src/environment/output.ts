// What a command writes, as far as it is kept.
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

export interface Output {
  /** What was kept so far; of a character that is cut off at the end, nothing. */
  text(): string;
  /** Milliseconds since something came, or since it was opened. */
  quietMs(): number;
}

/** @param onFull more came than is kept; what comes then is dropped */
export function collectOutput(
  stream: Readable,
  maxBytes: number,
  onOutput: (bytes: Uint8Array) => void,
  onFull: () => void,
): Output {
  const kept: Buffer[] = [];
  let size = 0;
  let last = Date.now();
  stream.on("data", (bytes: Buffer) => {
    last = Date.now();
    onOutput(bytes);
    const rest = maxBytes - size;
    if (rest > 0) kept.push(bytes.subarray(0, rest));
    size += bytes.length;
    if (bytes.length > rest) onFull();
  });
  return {
    text() {
      const decoder = new StringDecoder("utf8");
      const text = decoder.write(Buffer.concat(kept));
      return size > maxBytes ? text : text + decoder.end();
    },
    quietMs: () => Date.now() - last,
  };
}
