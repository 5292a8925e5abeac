// What processes read, map, stand in and run is changed by others behind a checkpoint: a rewind brings both back as they belonged together. And no process is left out.

import type { Checkpoint } from "agentrewind";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { pythonPath } from "../helpers/python.ts";
import { Exact, type Seen } from "./exact.ts";
import { needed } from "./held.ts";
import { beginning } from "./history.ts";
import { differences } from "./oracle.ts";

/** A file $F of the folder $W/d. What cannot be done to one of them (a program that runs is not written to) is left. */
const changes = {
  grown: "seq 100000 >>$F",
  "cut off": ": >$F",
  "written in place": "printf other | dd of=$F conv=notrunc status=none",
  replaced: "echo other >new; mv -f new $F",
  renamed: "mv $F $F.old",
  "renamed, with another in its place": "mv $F $F.old; cp /bin/cat $F",
  unlinked: "rm $F",
  "made anew": "rm $F; seq 2000 >$F",
  "of another mode, owner and time": "chmod 0 $F; chown 1:2 $F; touch -d @1 $F",
  "in a folder that is renamed": "mv $W/d $W/e; mkdir $W/d",
  "in a folder that is removed": "rm -rf $W/d",
};

const holders = `
mkdir -p d/inner; cd d; seq 1000 >f; cp /bin/sleep prog; mkfifo go
printf 'exec 7<>go\\nread -r -u 7 y\\necho first $y >>out\\nread -r -u 7 y\\necho second $y >>out\\nsleep infinity\\n' >run.sh
tell 0 open $PWD/f O_RDONLY; tell 0 read 0 4; tell 0 open $PWD/f 'O_WRONLY|O_APPEND'; tell 0 lock 1 flock
tell 0 map $PWD/f shared; tell 0 map $PWD/f private; tell 0 poke 3 77
tell 1 chdir $PWD/inner; tell 1 map $PWD/f shared
bash run.sh & echo one >go
./prog infinity & (cd inner; exec sleep infinity) & (exec <f; read -r x; exec sleep infinity) & (echo end >>f; exec sleep infinity) >>f &
cd $W; until grep -qs one d/out; do sleep 0.01; done`;

/** What the holders say of what they hold. */
const asked =
  "ask 0 read 0 5; ask 0 peek 0 6; ask 0 peek 1 3; ask 1 peek 0 4; ask 0 write 1 appended; tail -n 1 d/f; echo two >d/go; until grep -q two d/out; do sleep 0.01; done; cat d/out";

/** A change, and where the reader must see it. */
const noticed: readonly (readonly [line: string, path: RegExp])[] = [
  ["chmod 600 f0", /^.files.entries.mount-1.upper.f0: "file 644.*-> "file 600/m],
  ["touch -d @1500000000.123456789 f1", /upper.f1: .* 1500000000123456789 /],
  ["ln f1 f5", /upper.f5: undefined -> "file .* 2 links/],
  [
    "printf x | dd of=f1 conv=notrunc status=none; touch -d @1500000000.123456789 f1",
    /^.files.entries.mount-1.upper.f1: /m,
  ],
  [`$PYTHON -ISc 'import os; os.setxattr("f1", "user.it", b"x")'`, /user.it=78/],
  ["mkfifo p7; rm s0; rm /etc/hostname", /root.upper.etc.hostname: undefined -> "character-device 0 0:0 .* 0:0/],
  ["v0=another", /^.processes.3.pages/m],
  ["tell 0 open $W/f1 O_RDWR", /descriptors.5: undefined/],
  ["tell 0 read 0 7", /descriptors.5.pos: "0" -> "7"/],
  ["tell 0 duplicate 0", /descriptors.6: undefined/],
  ["tell 0 lock 0 flock", /lock FLOCK ADVISORY WRITE/],
  ["tell 0 map $W/f1 private", /mappings.\w+: undefined -> .*f1/],
  ["tell 0 poke 0 9", /pages.\w+: /],
  ["tell 0 listen 7001", /^.network.\d+: .*0100007F:1B59 00000000:0000 0A/m],
  ["tell 0 pipe; tell 0 write 4 bytes", /"waiting":"6279746573"/],
  ["tell 0 event 5", /eventfd-count +5/],
  ["tell 0 poll", /more.*tfd/],
  ["tell 0 memfd content", /memfd:memory/],
  ["tell 0 umask 077", /Umask: "0022" -> "0077"/],
  ["tell 0 limit 5", /limits: /],
  ["tell 0 nice", /nice: 0 -> 1/],
  ["tell 0 ignore", /SigIgn: /],
  ["tell 0 block 0", /ShdPnd: "0" -> "200"/],
  ["tell 0 chdir /etc/skel", /cwd.0: .* -> "\/etc\/skel"/],
  ["tell 0 thread", /threads.1: undefined/],
  ["tell 0 fork", /^.processes.\d+: undefined -> /m],
  ["tell 0 zombie", /"zombie":0/],
  ["kill -STOP $(<a/1/pid)", /stopped: false -> true/],
];

describe.skipIf(lacking(...needed))("a pair of files and processes", () => {
  let exact: Exact;
  let empty: Checkpoint;
  beforeAll(async () => {
    exact = await Exact.open({ network: "own" }, ["actor.py"]);
    empty = await exact.held.checkpoint();
  });
  const begin = async (): Promise<void> => {
    await exact.held.back(empty);
    await exact.held.sh(`${beginning(pythonPath() as string)}actor 0; actor 1`);
  };
  afterAll(() => exact.end());

  describe("with files that processes hold", () => {
    let held: Seen;
    let first: string;
    beforeAll(async () => {
      await begin();
      await exact.held.sh(holders);
      held = await exact.capture();
      first = await exact.held.sh(asked);
    });

    test.each(Object.entries(changes))("%s", async (_, change) => {
      for (let round = 0; round < 2; round++) {
        await exact.back(held);
        await exact.held.sh(`for F in f run.sh prog; do cd $W/d && { ${change}; } 2>/dev/null; done; cd $W`);
      }
      await exact.back(held);
      expect(await exact.held.sh(asked)).toBe(first);
      expect(first.split("\n").slice(0, 2)).toEqual(["3|4|5", "1|2|3|"]);
    });
  });

  test.each(noticed)("the reader notices: %s", async (line, path) => {
    if (line === noticed[0]?.[0]) await begin();
    const before = await exact.look();
    await exact.held.sh(line);
    expect(differences(before, await exact.look(), Number.POSITIVE_INFINITY).join("\n")).toMatch(path);
  });

  test("files without a name that are held", async () => {
    await begin();
    await exact.held.sh(`
      mkdir d; cd d; seq 100 >gone; seq 100 >other; ln other link; seq 100 >again; seq 100 >apart; ln apart ../apart; mkfifo fifo pipe; mkdir cwd; cp /bin/sleep prog
      tell 0 open $PWD/gone O_RDWR; tell 0 read 0 5; tell 0 open $PWD/other O_RDONLY; tell 0 read 1 5; tell 0 open $PWD/again O_RDONLY; tell 0 open $PWD/apart 'O_WRONLY|O_APPEND'
      tell 0 open $PWD/fifo O_RDWR; tell 0 write 4 waiting; tell 0 open $PWD/pipe O_RDWR; tell 0 map $PWD/gone shared; tell 0 map $PWD/other private; tell 0 map $PWD/again shared; tell 1 chdir $PWD/cwd; ./prog infinity &
      rm gone other again apart fifo pipe prog; rmdir cwd; seq 7 >again; mkfifo pipe; cd $W; mkdir e; seq 5 >e/f; seq 5 >e/g; tell 1 open $W/e/f O_RDONLY; tell 1 open $W/e/g O_RDWR; mv e/g g; rm -r e`);
    const tell =
      "ask 0 read 0 9; ask 0 read 1 9; ask 0 read 2 9; ask 0 read 4 9; ask 1 read 0 9; ask 0 peek 0 4; ask 0 peek 2 4; ls d";
    const seen = await exact.capture();
    const first = await exact.held.sh(tell);
    await exact.back(seen);
    expect(await exact.held.sh(tell)).toBe(first);
    const again = await exact.back(seen);
    if (again !== undefined) await exact.back(again);
  });

  test("changed again and again by others while it is captured", async () => {
    await begin();
    await exact.held.sh(
      "seq 1000 >f; tail -n +1 -f f >>tailed & while :; do echo $((n++)) >>f; done & while :; do echo $((m++)) >state.new; mv state.new state; done &",
    );
    const seen = [await exact.capture(), await exact.capture()];
    for (const one of [...seen, ...seen.reverse()]) await exact.back(one);
  });

  test("processes whose session, group or parent has gone, that were stopped, and that nobody has waited for", async () => {
    await begin();
    const other = (line: string) => exact.held.rewind.environment.exec(line, { shell: "other" });
    await other(
      "sleep infinity & (sleep infinity & sleep infinity & exec kill -STOP $!) & (sleep infinity &); sleep 0.2; kill -9 $$",
    );
    await exact.held.sh(
      "(sleep infinity | (sleep infinity & kill -9 $BASHPID)) & tell 0 zombie; tell 0 session; tell 0 fork; kill -9 $(<a/0/pid); sleep 0.2",
    );
    const seen = await exact.capture();
    const names = Object.values(seen.captured.processes).map(({ name }) => name);
    expect(names.filter((name) => name === "sleep").length).toBeGreaterThanOrEqual(4);
    for (let round = 0; round < 2; round++) {
      await exact.held.sh("pkill sleep || true");
      await exact.back(seen);
      const again = await exact.capture();
      expect(Object.keys(again.captured.processes)).toEqual(Object.keys(seen.captured.processes));
    }
  });
});
