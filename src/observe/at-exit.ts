// What is done when the process ends without having been asked to close anything: one listener for all, however many there are.

const waiting = new Set<() => void>();

function run(): void {
  for (const one of [...waiting]) one();
}

/** @param last must not wait for anything. @returns takes it back */
export function atExit(last: () => void): () => void {
  if (waiting.size === 0) process.on("exit", run);
  waiting.add(last);
  return () => {
    if (waiting.delete(last) && waiting.size === 0) process.off("exit", run);
  };
}
