// The classes of agents that a host holds: how often their turns look, at what, and which traces they work through. Fixed before any arm runs.

/** How a turn looks. "say": it calls nothing; somebody is told something. */
export const looks = ["read", "search", "git", "tests", "ask", "say"] as const;
export type Look = (typeof looks)[number];

export interface AgentClass {
  readonly name: string;
  readonly about: string;
  /** Of 100 turns, how many only look. */
  readonly looking: number;
  /** Of 100 of these, how many look so. */
  readonly at: Readonly<Partial<Record<Look, number>>>;
  /** Ids of the traces of which its acting turns are; each task begins at one that its seed chooses and goes round. */
  readonly traces: readonly string[];
  /** A server of its own runs from the beginning on; every second acting turn is a request that it counts. */
  readonly serves: boolean;
}

const repositories = [
  ...["py-duration", "py-lru", "py-csv-quotes", "py-interval-merge", "py-template", "py-topological", "py-money"],
  ...["js-query-string", "js-semver", "js-event-emitter", "js-deep-equal", "js-config-merge", "js-csv-writer"],
  ...["c-trim", "c-hex", "c-ring", "c-average", "c-tokenizer", "c-path-join"],
];

const shells = [
  ...["build-generated-table", "build-flags-in-the-shell", "build-static-library", "build-incremental-stamp"],
  ...["git-bisect", "git-rebase-conflict", "git-secret-removed", "log-summary", "log-dates", "pipe-tee-split"],
];

const alternating = repositories.flatMap((id, index) => [id, ...shells.slice(index, index + 1)]);

export const classes: readonly AgentClass[] = [
  {
    name: "look-heavy",
    about: "reads, searches and tests a small repository, now and then changes something",
    looking: 85,
    at: { read: 40, search: 20, git: 20, tests: 20 },
    traces: alternating,
    serves: false,
  },
  {
    name: "edit-heavy",
    about: "changes something in every second turn",
    looking: 50,
    at: { read: 40, search: 10, git: 20, tests: 30 },
    traces: alternating,
    serves: false,
  },
  {
    name: "service-heavy",
    about: "works beside a live Node server with a timer of 100 ms, which it asks and makes count",
    looking: 85,
    at: { read: 30, search: 15, git: 15, tests: 15, ask: 25 },
    traces: repositories,
    serves: true,
  },
  {
    name: "idle-heavy",
    about: "mostly waits for its model, says something or looks at a file",
    looking: 95,
    at: { read: 50, git: 10, say: 40 },
    traces: repositories,
    serves: false,
  },
];

/** The classes of ten agents, in this order again and again. */
const mixed = [0, 2, 1, 0, 3, 0, 1, 0, 2, 0] as const;

export const mixAbout = `of ten agents: ${classes
  .map(({ name }, index) => `${mixed.filter((one) => one === index).length} ${name}`)
  .join(", ")}`;

export const mixedClass = (agent: number): AgentClass => classes[mixed[agent % mixed.length] as number] as AgentClass;

export const classNamed = (name: string): AgentClass => classes.find((one) => one.name === name) as AgentClass;
