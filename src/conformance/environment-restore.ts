// Checks of `restore`.
import assert from "node:assert/strict";
import type { EnvironmentCheck } from "./environment-check.ts";
import { captured, lacks, look, noChanges, refusal, roundTrip, shell } from "./environment-tools.ts";

const trip = (name: string, before: string, after: string, needs: string): EnvironmentCheck => ({
  name: `restore brings back ${name}`,
  async check(environment) {
    if (!lacks(environment, needs)) await roundTrip(environment, before, after);
    return undefined;
  },
});

export const restoreChecks: readonly EnvironmentCheck[] = [
  trip(
    "text and binary contents",
    "printf 'a\\r\\n' > text; head -c 700000 /dev/zero | tr '\\0' '\\377' > binary; : > empty",
    "echo b > text; printf 'x' | dd of=binary bs=1 seek=500000 conv=notrunc 2>/dev/null; echo full > empty",
    "files",
  ),
  trip("what was deleted", "mkdir -p lost/deep; echo 1 > lost/deep/f; echo 2 > alone", "rm -r lost alone", "files"),
  trip(
    "the absence of what was added",
    "echo 1 > first; touch -d 2020-01-01 .",
    "echo 2 > added-later; mkdir -p added/tree; echo 3 > added/tree/f",
    "files",
  ),
  trip("empty folders", "mkdir -p hollow/one two", "rmdir hollow/one two; mkdir three", "files"),
  trip(
    "modes",
    "echo 1 > run.sh; chmod 755 run.sh; echo 2 > key; chmod 600 key; echo 3 > ro; chmod 444 ro; mkdir shut; chmod 700 shut",
    "chmod 600 run.sh; rm -f key ro; echo 4 > key; echo 4 > ro; chmod 777 shut",
    "modes",
  ),
  trip(
    "times of files and folders",
    "mkdir dated; echo 1 > dated/f; touch -d '2020-01-02 03:04:05.123456789' dated/f; touch -d '2019-01-02 03:04:05.5' dated",
    "echo 2 >> dated/f; touch dated/new",
    "all times",
  ),
  trip(
    "symbolic links, whatever they lead to",
    "ln -s nowhere dangling; ln -s . itself; ln -s /etc out; echo 1 > target; ln -s target good",
    "rm dangling itself out; ln -sf nowhere good; mkdir dangling; echo 1 > out",
    "symbolic links",
  ),
  trip(
    "hard links after an edit in place and after a loss",
    "mkdir pair; echo 1 > pair-a; ln pair-a pair/b; echo 2 > pair-c; ln pair-c pair/d",
    "echo 2 > pair/b; rm pair/d",
    "hard links",
  ),
  trip(
    "kinds that were exchanged",
    "echo 1 > was-file; mkdir was-folder; echo 2 > was-folder/in; ln -s was-file was-link",
    "rm -r was-file was-folder was-link; mkdir was-file; echo 3 > was-file/in; ln -s was-file was-folder; echo 4 > was-link",
    "symbolic links",
  ),
  trip("FIFOs", "mkfifo -m 640 pipe", "rm pipe; echo 1 > pipe", "FIFOs"),
  trip(
    "names with spaces, quotes, line ends and other scripts",
    `echo 1 > ' lead'; echo 2 > '"q"'; echo 3 > $'line\\nend'; echo 4 > '漢字'; echo 5 > -x; echo 6 > '*'; mkdir '\\'; echo 7 > '\\/f'`,
    `for f in ' lead' '"q"' $'line\\nend' '漢字' ./-x '*'; do rm "$f"; done; echo 8 > $'new\\tname'; rm -r '\\'`,
    "files",
  ),
  {
    name: "restore again changes nothing",
    async check(environment) {
      await shell(environment, "mkdir twice; echo 1 > twice/f");
      const wanted = await look(environment);
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > twice/f; echo 3 > twice/g");
      await environment.restore(manifest);
      const { restored } = await environment.restore(manifest);
      assert.deepEqual(restored, noChanges);
      assert.deepEqual(await look(environment), wanted);
      return undefined;
    },
  },
  {
    name: "after a restore, capture gives the restored manifest",
    async check(environment) {
      await shell(environment, "mkdir d; echo 1 > d/f; echo 2 > d/g; touch -d 2020-01-01 d .");
      const first = await captured(environment);
      await shell(environment, "echo 3 > d/f; rm d/g; echo 4 > h");
      await environment.restore(first.manifest);
      assert.deepEqual((await captured(environment)).manifest, first.manifest);
      return undefined;
    },
  },
  {
    name: "an abandoned state can be restored as well",
    async check(environment) {
      await shell(environment, "echo 1 > state");
      const one = await captured(environment);
      await shell(environment, "echo 2 > state; echo x > extra");
      const wanted = await look(environment);
      const two = await captured(environment);
      await environment.restore(one.manifest);
      await environment.restore(two.manifest);
      assert.deepEqual(await look(environment), wanted);
      return undefined;
    },
  },
  {
    name: "restore says what came back",
    async check(environment) {
      await shell(environment, "echo 1 > changed; echo 1 > lost; touch -d 2020-01-01 .");
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > changed; rm lost; echo 3 > found");
      const { restored } = await environment.restore(manifest);
      assert.deepEqual(restored.changed, ["changed"]);
      assert.deepEqual(restored.added, ["lost"]);
      assert.deepEqual(restored.removed, ["found"]);
      return undefined;
    },
  },
  {
    name: "generation counts the restores, and moved is given only where the handle changes",
    async check(environment) {
      const { manifest } = await captured(environment);
      const one = await environment.restore(manifest);
      const two = await environment.restore(manifest);
      assert(two.generation > one.generation, "the second restore has a higher generation");
      if (environment.capabilities.inPlace) assert.equal(two.moved, undefined);
      return undefined;
    },
  },
  {
    name: "what is to be kept keeps its present state",
    async check(environment) {
      await shell(environment, "echo 1 > mine; echo 1 > theirs; echo 1 > lost");
      const { manifest } = await captured(environment);
      await shell(
        environment,
        "echo 2 > mine; echo 2 > theirs; rm lost; mkdir -p new; echo 2 > new/theirs; echo 2 > new/mine",
      );
      const { restored } = await environment.restore(manifest, { keep: new Set(["theirs", "new/theirs", "lost"]) });
      assert.equal(
        await shell(environment, "cat mine theirs new/theirs; ls; ls new"),
        "1\n2\n2\nmine\nnew\ntheirs\ntheirs\n",
      );
      assert(!restored.changed.includes("theirs"), "what was kept did not come back");
      return undefined;
    },
  },
  {
    name: "what was changed after the captured state that a restore starts from is not overwritten",
    async check(environment) {
      // There the shell's own steps end with it.
      if (environment.capabilities.processes) return undefined;
      await shell(environment, "echo 1 > mine; echo 1 > theirs; echo 1 > removed; mkdir gone; echo 1 > gone/f");
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > mine; echo 2 > theirs; rm removed; rm -r gone; mkdir added; echo 2 > added/f");
      const since = (await captured(environment)).manifest;
      await shell(environment, "echo 3 > theirs; echo 3 > removed; mkdir gone; echo 3 > gone/f; echo 3 > added/g");
      const { moved, notRestored, restored } = await environment.restore(manifest, { since });
      // Where the restore moves on to a new handle, the old one still holds everything.
      if (moved !== undefined) return undefined;
      assert.equal(
        await shell(environment, "cat mine theirs removed gone/f added/g"),
        "1\n3\n3\n3\n3\n",
        "nothing that nobody captured may be lost",
      );
      const named = notRestored.map((one) => one.path);
      for (const path of ["theirs", "removed"])
        assert(named.includes(path), `${path} was left alone and must be named`);
      assert(!restored.changed.includes("theirs"), "what was left alone did not come back");
      return undefined;
    },
  },
  {
    name: "what cannot be brought back is named, and the rest comes back",
    async check(environment) {
      const maker =
        'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\\"blocked\\")" 2>/dev/null || ' +
        'node -e "require(\\"net\\").createServer().listen(\\"blocked\\", () => process.kill(process.pid, 9))" 2>/dev/null; test -S blocked';
      await shell(environment, "echo 1 > blocked; echo 1 > free");
      const { manifest } = await captured(environment);
      await shell(environment, "rm blocked; echo 2 > free");
      if ((await environment.exec(maker)).exitCode !== 0) return undefined;
      const { restored, notRestored } = await environment.restore(manifest);
      assert.equal(await shell(environment, "cat free"), "1\n");
      const back = (await environment.exec("test -f blocked")).exitCode === 0;
      assert.deepEqual(
        notRestored.map((one) => one.path),
        back ? [] : ["blocked"],
      );
      if (!back)
        assert(!JSON.stringify(restored).includes("blocked"), "what did not come back is not listed as restored");
      return undefined;
    },
  },
  {
    name: "a restore writes through no link",
    async check(environment) {
      const outside = (await shell(environment, "mktemp -d")).trim();
      try {
        await shell(environment, `mkdir folder; echo 1 > folder/f; echo 1 > folder/g; echo precious > ${outside}/f`);
        const { manifest } = await captured(environment);
        await shell(environment, `rm -r folder; ln -s ${outside} folder`);
        await environment.restore(manifest);
        assert.equal(await shell(environment, `ls ${outside}; cat ${outside}/f; cat folder/f`), "f\nprecious\n1\n");
      } finally {
        await environment.exec(`rm -rf ${outside}`);
      }
      return undefined;
    },
  },
  {
    name: "a state that is not there is refused, with nothing touched",
    async check(environment) {
      await shell(environment, "echo 1 > still-here; echo 1 > f");
      const before = await look(environment);
      await refusal(environment.restore({ files: "0".repeat(64), processes: null }), "a restore of an unknown state");
      assert.deepEqual(await look(environment), before);
      return undefined;
    },
  },
  {
    name: "a state of which a part is missing is refused, with nothing touched",
    async check(environment, { damage }) {
      if (damage === undefined) return undefined;
      await shell(environment, "echo 1 > a; echo only here > m; echo 1 > z");
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > a; rm m; echo 2 > z; echo 2 > zz");
      const before = await look(environment);
      await damage(environment, manifest);
      await refusal(environment.restore(manifest), "a restore of a damaged state");
      assert.deepEqual(await look(environment), before);
      return undefined;
    },
  },
  {
    name: "a restore that is given up at once touches nothing",
    async check(environment) {
      await shell(environment, "echo 1 > f");
      const { manifest } = await captured(environment);
      await shell(environment, "echo 2 > f; echo 2 > g");
      const before = await look(environment);
      await refusal(environment.restore(manifest, { signal: AbortSignal.abort() }), "a restore that was given up");
      assert.deepEqual(await look(environment), before);
      await environment.restore(manifest);
      assert.equal(await shell(environment, "cat f; ls"), "1\nf\n");
      return undefined;
    },
  },
  {
    name: "states outlive close",
    async check(environment, { reopen }) {
      if (reopen === undefined) return undefined;
      await shell(environment, "mkdir d; echo 1 > d/f");
      const wanted = await look(environment);
      const { manifest } = await captured(environment);
      await shell(environment, "rm -r d; echo 2 > e");
      await environment.close();
      const again = await reopen(environment);
      await again.restore(manifest);
      assert.deepEqual(await look(again), wanted);
      return again;
    },
  },
];
