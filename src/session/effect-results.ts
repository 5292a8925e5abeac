// A recorded result: what the tool returned, and beside it what a framework must have to give its own form of it again.

/** Of results whose framework gave both; any other JSON is the result itself. */
interface Both {
  readonly $returned: unknown;
  readonly $kept: unknown;
}

export const bothOf = (returned: unknown, kept: unknown): Both => ({ $returned: returned, $kept: kept });

function isBoth(stored: unknown): stored is Both {
  if (typeof stored !== "object" || stored === null) return false;
  return Object.keys(stored).length === 2 && Object.hasOwn(stored, "$returned") && Object.hasOwn(stored, "$kept");
}

/** For `compensate`, and for who reads of it. */
export const returnedIn = (stored: unknown): unknown => (isBoth(stored) ? stored.$returned : stored);

/** For the framework. */
export const keptIn = (stored: unknown): unknown => (isBoth(stored) ? stored.$kept : stored);
