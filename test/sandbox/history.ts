// Random histories of a sandbox: what is done in it, as lines of its shell, and when it is captured and brought back.

/** A line of the shell, or what the owner of the sandbox does; numbers choose among the checkpoints that there are then. */
export type Step =
  | { readonly do: "line"; readonly name: string; readonly line: string }
  | { readonly do: "checkpoint" }
  | { readonly do: "rewind"; readonly to: number }
  | { readonly do: "undo" };

/** Mulberry32: small, seeded, good enough to choose. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** From 0 to below `count`. */
  below(count: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * count);
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

/** Read by the sandbox's shell at the beginning of each history. $W is the workspace. */
export const beginning = (python: string): string => `
W=$PWD; PYTHON=${python}
actor() { mkdir -p $W/a/$1 && cd $W/a/$1 && { rm -f in out pid; mkfifo in out; $PYTHON -IS $W/actor.py $W/a/$1 >/dev/null 2>&1 </dev/null & }; cd $W; until [ -s a/$1/pid ]; do sleep 0.01; done; }
alive() { [ -s "$1" ] && kill -0 $(<$1) && ! grep -q '^State:.[TZ]' /proc/$(<$1)/status; }
tell() { alive $W/a/$1/pid && echo "\${*:2}" >$W/a/$1/in && read -r -t 10 said <>$W/a/$1/out; }
ask() { tell "$@" && echo "$said"; }
one() { local n=$1; set -- $(jobs -p); [ $# -gt 0 ] && shift $((n % $#)) && echo $1 || echo none; }
mkdir -p d0 d1 /usr/local/lib/it; echo first >f0; seq 3000 >f1; echo third >d0/f2; ln f0 d1/l0; ln -s f1 s0; echo x >/tmp/t0
`;

const files = ["f0", "f1", "d0/f2", "d1/l0", "s0", "d1/f3", "d2/f4"].map((name) => `$W/${name}`);
files.push("/tmp/t0", "/dev/shm/m0", "/usr/local/lib/it/data", "/root/it");
// Of the host, below the sandbox's layer.
files.push("/etc/hostname", "/etc/skel/.profile");
const folders = ["$W/d0", "$W/d1", "$W/d2", "/tmp/d3", "/usr/local/lib/it", "/etc/skel"];

type Lines = Readonly<Record<string, (random: Random) => string>>;

const onFiles: Lines = {
  write: (r) => `echo w${r.below(1000)} >${r.of(files)}`,
  append: (r) => `seq ${r.below(200)} >>${r.of(files)}`,
  replace: (r) => `echo r${r.below(1000)} >$W/new && mv -f $W/new ${r.of(files)}`,
  rename: (r) => `mv -f ${r.of(files)} ${r.of(files)}`,
  renameFolder: (r) => `mv -fT ${r.of(folders)} ${r.of(folders)}`,
  unlink: (r) => `rm -f ${r.of(files)}`,
  removeFolder: (r) => `rm -rf ${r.of(folders)}`,
  makeFolder: (r) => `mkdir -p ${r.of(folders)}`,
  link: (r) => `ln -f ${r.of(files)} ${r.of(files)}`,
  symlink: (r) => `ln -sfn ${r.of(files)} ${r.of(files)}`,
  chmod: (r) => `chmod ${r.of(["600", "755", "4711", "000", "444"])} ${r.of([...files, ...folders])}`,
  chown: (r) => `chown ${r.below(3)}:${r.below(3)} ${r.of([...files, ...folders])}`,
  touch: (r) => `touch -d @${1_500_000_000 + r.below(1000)}.${r.below(1000)} ${r.of([...files, ...folders])}`,
  truncate: (r) => `truncate -s ${r.below(20_000)} ${r.of(files)}`,
  mkfifo: (r) => `mkfifo $W/p${r.below(2)}`,
  device: (r) => `rm -rf $W/c0; mkdir $W/c0; cp ${r.of(files)} $W/c0; touch $W/c0/.hidden${r.below(9)}`,
  attribute: (r) =>
    `$PYTHON -ISc 'import os, sys; os.setxattr(sys.argv[1], "user.it", b"${r.below(9)}")' ${r.of(files)}`,
  install: (r) =>
    `printf '#!/bin/sh\\nexec sleep infinity # ${r.below(99)}\\n' >$W/made && install -D -m 755 $W/made /usr/local/bin/it && install -D -m 644 $W/made /usr/local/share/it/${r.below(3)}/made`,
  package: (r) => `dpkg --force-unsafe-io -i $W/it_${1 + r.below(2)}.deb >/dev/null`,
  purge: () => "dpkg --force-unsafe-io -P it >/dev/null",
};

/** Each waits for something that does not come, or for what another line does. */
const idle: Lines = {
  actor: (r) => `actor ${r.below(3)}`,
  reader: (r) => `{ read -r x; exec sleep infinity; } <${r.of(files)} &`,
  appender: (r) => `{ echo begun; exec sleep infinity; } >>${r.of(files)} &`,
  cwd: (r) => `(cd ${r.of(folders)} && exec sleep infinity) &`,
  script: (r) =>
    `printf 'x=${r.below(9)}\\nexec 7<>$W/p0\\nread -r -u 7 y\\necho $x $y >>$W/f1\\nsleep infinity\\n' >$W/run.sh; W=$W bash $W/run.sh &`,
  replaceScript: (r) => `printf 'echo other ${r.below(9)}\\n' >$W/run.new; mv $W/run.new $W/run.sh`,
  answerScript: () => "[ -p $W/p0 ] && echo go <>$W/p0 >$W/p0",
  program: () => "rm -f $W/prog; cp /bin/sleep $W/prog; $W/prog infinity &",
  replaceProgram: (r) =>
    r.of(["rm -f $W/prog", "cp /bin/cat $W/prog.new; mv $W/prog.new $W/prog", "mv $W/prog $W/prog.old"]),
  installed: () => "[ -x /usr/local/bin/it ] && /usr/local/bin/it &",
  packaged: () => "[ -x /usr/bin/it-packaged ] && /usr/bin/it-packaged &",
  pipeline: (r) => `(seq ${r.below(20_000)}; exec sleep infinity) | (head -c 5 >/dev/null; exec sleep infinity) &`,
  stop: (r) => `kill -STOP $(one ${r.below(9)})`,
  proceed: (r) => `kill -CONT $(one ${r.below(9)})`,
  kill: (r) => `kill -${r.of(["9", "TERM", "HUP"])} -- -$(one ${r.below(9)})`,
  killAll: () => "kill -9 $(jobs -p) && wait",
  variable: (r) => `v${r.below(3)}=${r.below(1000)}`,
  list: (r) => `l+=(${r.below(1000)})`,
  export: (r) => `export E${r.below(3)}=${r.below(1000)}`,
  unset: (r) => `unset v${r.below(3)} E${r.below(3)}`,
  function: (r) => `f${r.below(2)}() { echo ${r.below(1000)}; }`,
  option: (r) => `set ${r.of(["-", "+"])}o ${r.of(["noclobber", "pipefail"])}`,
  umask: (r) => `umask ${r.of(["022", "077", "0"])}`,
  trap: (r) => `trap 'v0=${r.below(9)}' USR1`,
  descriptor: (r) => `exec ${r.of(["7", "8"])}${r.of(["<", ">>", "<>"])}${r.of(files)}`,
  chdir: (r) => `cd ${r.of(folders)}`,
  other: (r) => `(trap '' TERM; umask 077; ulimit -n ${50 + r.below(50)}; exec sleep infinity) &`,
  session: () => "setsid sleep infinity &",
};

const opens = ["O_RDONLY", "O_RDWR|O_CREAT", "O_WRONLY|O_APPEND|O_CREAT", "O_RDWR|O_CREAT|O_TRUNC"];
const where = (r: Random): string => (r.below(2) === 0 ? `${7000 + r.below(3)}` : `$W/u${r.below(2)}`);

const told: Lines = {
  open: (r) => `open ${r.of(files)} '${r.of(opens)}'`,
  read: (r) => `read ${r.below(9)} ${r.below(500)}`,
  seek: (r) => `seek ${r.below(9)} ${r.below(500)}`,
  write: (r) => `write ${r.below(9)} ${"text".repeat(r.below(9))}`,
  close: (r) => `close ${r.below(9)}`,
  duplicate: (r) => `duplicate ${r.below(9)}`,
  map: (r) => `map ${r.of(files)} ${r.of(["shared", "private"])}`,
  poke: (r) => `poke ${r.below(9)} ${r.below(5000)}`,
  room: (r) => `room ${r.below(400_000)}`,
  set: (r) => `set ${r.below(1000)}`,
  chdir: (r) => `chdir ${r.of(folders)}`,
  umask: (r) => `umask ${r.of(["022", "077"])}`,
  limit: (r) => `limit ${r.below(100_000)}`,
  nice: () => "nice",
  listen: (r) => `listen ${where(r)}`,
  connect: (r) => `connect ${where(r)}`,
  accept: () => "accept",
  pair: () => "pair",
  pipe: () => "pipe",
  memfd: (r) => `memfd ${"memory".repeat(r.below(9))}`,
  event: (r) => `event ${r.below(9)}`,
  timer: (r) => `timer ${1_000_000 + r.below(1000)}`,
  poll: () => "poll",
  lock: (r) => `lock ${r.below(9)} ${r.of(["flock", "posix"])}`,
  block: (r) => `block ${r.below(9)}`,
  ignore: () => "ignore",
  fork: () => "fork",
  zombie: () => "zombie",
  thread: () => "thread",
  session: () => "session",
};

/** Without these a history rests between its steps. */
const moving: Lines = {
  busy: () => "while :; do ((i++)); done &",
  writer: (r) => `while :; do echo $((n++)) >>${r.of(files)}; done &`,
  tail: (r) => `tail -n +1 -f ${r.of(files)} >>$W/tailed &`,
  replacer: () => "while :; do echo $((n++)) >$W/state.new; mv $W/state.new $W/state; done &",
  sleeper: () => "sleep 100000 &",
  spawner: () => "while :; do /bin/true; done &",
};

function line(random: Random, rests: boolean): Step {
  const lists = [onFiles, idle, idle, told, told, ...(rests ? [] : [moving])];
  const list = random.of(lists);
  const name = random.of(Object.keys(list));
  const text = (list[name] as Lines[string])(random);
  return { do: "line", name, line: list === told ? `tell ${random.below(3)} ${text}` : text };
}

/** In two of three nothing runs by itself between two steps. */
export function makeHistory(seed: number): Step[] {
  const random = new Random(seed);
  const rests = random.below(3) > 0;
  const steps: Step[] = [];
  const lines = (most: number): void => {
    for (let count = 1 + random.below(most); count > 0; count--) steps.push(line(random, rests));
  };
  for (const number of [0, 1]) steps.push({ do: "line", name: "actor", line: `actor ${number}` });
  lines(8);
  steps.push({ do: "checkpoint" });
  for (let rounds = 1 + random.below(4); rounds > 0; rounds--) {
    lines(6);
    const dice = random.below(10);
    if (dice < 4) steps.push({ do: "checkpoint" });
    else if (dice < 8) steps.push({ do: "rewind", to: random.below(9) });
    else steps.push({ do: "undo" });
  }
  lines(3);
  steps.push({ do: "rewind", to: random.below(9) });
  return steps;
}

export const shown = (steps: readonly Step[]): string =>
  steps
    .map((step) =>
      step.do === "line" ? step.line : step.do === "rewind" ? `REWIND ${step.to}` : step.do.toUpperCase(),
    )
    .join("\n");
