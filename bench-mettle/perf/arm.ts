// What an arm of the benchmark is: one way to checkpoint and rewind a tree.

export const operations = ["first", "unchanged", "one", "hundred", "rewind-one", "rewind-all"] as const;
export type Operation = (typeof operations)[number];

/** Where an arm works; each has a copy of the tree of its own, because a restore makes files anew. */
export interface Place {
  readonly work: string;
  /** An empty folder for what the arm stores. */
  readonly store: string;
  /** For caches and settings; not counted. */
  readonly scratch: string;
}

export interface Sample {
  readonly ms: number;
  /** What else was measured, by name. */
  readonly parts?: Readonly<Record<string, number>>;
}

export interface Running {
  /** The folder whose blocks are the arm's storage. */
  readonly stored: string;
  checkpoint(): Promise<Sample>;
  /** To the last checkpoint. */
  rewind(): Promise<Sample>;
  /** Other ways to measure the operation, each after a change of its own. */
  readonly modes?: (operation: Operation) => readonly Mode[];
  end(): Promise<void>;
}

export interface Mode {
  readonly name: string;
  /** True when it stores a state as `checkpoint` does. */
  readonly stores: boolean;
  run(): Promise<Sample>;
}

export interface Arm {
  readonly name: string;
  /** How it is shown. */
  readonly title: string;
  /** What it does, and what survives a power loss. */
  readonly about: string;
  /** Why it cannot run here, and how to get it. */
  readonly missing?: string;
  start(place: Place): Promise<Running>;
}
