// Random turns of a sandbox: what is taken for unchanged is unchanged, as an independent reader sees it from outside and as the shell itself says.
import { appendFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { Held, needed } from "./held.ts";
import { Random } from "./history.ts";
import { differences, Oracle, type State } from "./oracle.ts";

const turns = process.env.AGENTREWIND_LONG === "1" ? 5_000 : 30;
const seed = Number(process.env.AGENTREWIND_SEED ?? 1);
/** In one sandbox. */
const together = 100;

const lines = [
  ..."ls -la /etc|cat /etc/passwd|false|true|nosuch|grep -r root /etc/passwd|find /usr/share/doc -maxdepth 1 | head -3|echo $RANDOM|(cd /; v=9; umask 0)|bash -c 'v=8; cd /'|pwd".split(
    "|",
  ),
  ..."v=1|v=2|unset v|export v|w=$RANDOM|a=(1 2)|a+=(3)|unset a|declare -A m=([k]=1)|declare -A m=([k]=2)|readonly -p >/dev/null|local x=1".split(
    "|",
  ),
  ..."cd /|cd /tmp|cd -|pushd /usr|popd|mkdir -p /tmp/d; cd /tmp/d|rm -rf /tmp/d".split("|"),
  ..."f() { echo 1; }|f() { echo 2; }|unset -f f|alias l=ls|alias l='ls -l'|unalias l|shopt -s nullglob|shopt -u nullglob|set -f|set +f".split(
    "|",
  ),
  ..."umask 022|umask 077|ulimit -Sn 500|ulimit -Sn 600|exec 7</etc/passwd|read -u 7 x|exec 7<&-|set -- a b|set --|hash -r|hash -p /bin/true ls".split(
    "|",
  ),
  ..."trap 'x=1' USR1|trap - USR1|kill -USR1 $$|sleep 300 & disown|pkill sleep; sleep 0.05|PROMPT_COMMAND='n=1'|unset PROMPT_COMMAND".split(
    "|",
  ),
  ..."echo 1 > /root/f|echo 1 > /root/f; touch -d @5 /root/f|touch -d @5 /root/f|echo 2 > /root/f|chmod 600 /root/f|chmod 644 /root/f|rm -f /root/f|rm -f /etc/hostname|echo h > /etc/hostname".split(
    "|",
  ),
  ..."touch /tmp/t; rm /tmp/t|mkdir /tmp/e; rmdir /tmp/e|mv /tmp/m1 /tmp/m2|mv /tmp/m2 /tmp/m1|echo > /tmp/m1|ln -sf x /tmp/s|cp /bin/true /tmp/true|cat /tmp/* >/dev/null|dd if=/dev/zero of=/tmp/z bs=4k count=1 conv=notrunc 2>&1".split(
    "|",
  ),
];

/** Its own commands in a copy of it, less what says only that something ran. */
const battery = `( declare -p; declare -f; declare -F; alias; shopt; set +o; trap; umask; dirs -l; ulimit -a; printf '[%s]' "$@" "\${!-}" ) 2>/dev/null | grep -vE '^declare -\\S+ (BASHPID|BASH_ARGV|BASH_SOURCE|BASH_LINENO|BASH_SUBSHELL|BASH_CMDS|BASH_COMMAND|EPOCH\\w+|HISTCMD|LINENO|PIPESTATUS|RANDOM|SECONDS|SRANDOM|FUNCNAME|_|__agentrewind\\w+)(=|$)'`;

interface Truth {
  readonly files: unknown;
  readonly processes: unknown;
}

class Machine {
  readonly held: Held;
  readonly #oracle = new Oracle();

  constructor(held: Held) {
    this.held = held;
  }

  async truth(): Promise<Truth> {
    const { stdout } = await this.held.rewind.environment.exec(battery);
    const { processes, files, ipc } = await this.#oracle.lookFrozen(this.held.rewind.environment);
    const seen = Object.entries(processes).map(([pid, one]) => [pid, isOurs(one) ? lasting(one) : one]);
    return { files: seenFiles(files), processes: { said: stdout.split("\n"), ipc, seen: Object.fromEntries(seen) } };
  }

  async end(): Promise<void> {
    this.#oracle.end();
    await this.held.end();
  }
}

type Process = State["processes"][string];

/** The tree's root, and persistent shells. */
const isOurs = ({ argv }: Process): boolean => /^agentrewind-root\0|--rcfile\0/.test(argv);

/** Of what ran, and waits again: not where in its memory things lie. */
function lasting({ pages: _, mappings: __, layout: ___, threads: ____, ...rest }: Process): Process {
  return rest;
}

function seenFiles({ entries, mounts }: State["files"]): unknown {
  const kept = Object.entries(entries).filter(([path]) => !/^run(\/|$)|^[^/]*\.work(\/|$)/.test(path));
  return { entries: Object.fromEntries(kept), mounts };
}

describe.skipIf(lacking(...needed))("random turns of a sandbox", () => {
  const groups = Array.from({ length: Math.ceil(turns / together) }, (_, index) => seed + index);
  test.each(groups)("seed %d", { timeout: 1_800_000 }, async (group) => {
    const machine = new Machine(await Held.open());
    const { held } = machine;
    const random = new Random(group);
    const found = { turns: 0, same: 0, none: 0, sameFiles: 0, sameProcesses: 0 };
    try {
      await held.rewind.environment.exec("true");
      let before = (await held.checkpoint()).environment;
      let truth = await machine.truth();
      for (let turn = 0; turn < Math.min(turns, together); turn++) {
        const said = Array.from({ length: 1 + random.below(3) }, () => random.of(lines));
        for (const line of said) await held.rewind.environment.exec(line, { timeoutMs: 20_000 });
        const after = (await held.checkpoint()).environment;
        const now = await machine.truth();
        const told = `AGENTREWIND_SEED=${group}, turn ${turn}: ${said.join(" ;; ")}`;
        const apart = {
          files: differences(truth.files, now.files),
          processes: differences(truth.processes, now.processes),
        };
        for (const half of ["files", "processes"] as const)
          if (after[half] === before[half]) expect(apart[half], `${told}: ${half}`).toEqual([]);
        found.turns++;
        if (apart.files.length + apart.processes.length === 0) found.same++;
        if (after.files === before.files && after.processes === before.processes) found.none++;
        if (apart.files.length === 0 && after.files !== before.files) found.sameFiles++;
        if (apart.processes.length === 0 && after.processes !== before.processes) found.sameProcesses++;
        [before, truth] = [after, now];
      }
      const { same, none, sameFiles, sameProcesses } = found;
      // With a trap or a prompt of its own a shell is never judged, and it may have one from the beginning to the end.
      if (group === 1) expect(none).toBeGreaterThan(0);
      console.log(
        `seed ${group}: ${found.turns} turns, ${same} without a change, ${none} of them told so; files taken for changed that were not: ${sameFiles}, processes: ${sameProcesses}`,
      );
      const report = process.env.AGENTREWIND_REPORT;
      if (report !== undefined) appendFileSync(report, `${JSON.stringify({ seed: group, ...found })}\n`);
    } finally {
      await machine.end();
    }
  });
});
