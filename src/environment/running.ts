// The commands that an environment runs just now, so that a restore can end them.

export interface RunningCommands {
  /** Runs `work` with a signal that `end`, or the caller's own, aborts. */
  run<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Ends them all and resolves when they have. */
  end(): Promise<void>;
}

export function trackCommands(): RunningCommands {
  const running = new Map<AbortController, Promise<unknown>>();
  return {
    async run(signal, work) {
      const control = new AbortController();
      const stop = (): void => control.abort();
      signal?.addEventListener("abort", stop, { once: true });
      if (signal?.aborted) stop();
      const result = work(control.signal);
      running.set(control, result);
      try {
        return await result;
      } finally {
        running.delete(control);
        signal?.removeEventListener("abort", stop);
      }
    },
    async end() {
      const results = [...running.values()];
      for (const control of running.keys()) control.abort();
      await Promise.allSettled(results);
    },
  };
}
