// Databases of a sandbox come back with what was in them at the checkpoint, and go on.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { Held, needed } from "./held.ts";

const versions = "/usr/lib/postgresql";
/** Folder of PostgreSQL's programs, as Debian has them. */
const postgres = (existsSync(versions) ? readdirSync(versions) : [])
  .map((version) => join(versions, version, "bin"))
  .find((folder) => existsSync(join(folder, "initdb")));
const install = "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends";

describe.skipIf(lacking(...needed))("databases", () => {
  let held: Held;
  afterEach(() => held.end());

  test.skipIf(postgres === undefined)(
    "PostgreSQL, run by another user: its transactions, and a client that is in the middle of one",
    async () => {
      held = await Held.open();
      const at = "/var/lib/held";
      const as = "setpriv --reuid=65534 --regid=65534 --clear-groups";
      await held.sh(
        `export PATH=${postgres}:$PATH PGHOST=${at} PGUSER=held; mkdir -p ${at}; chown 65534 ${at}; cd ${at}`,
      );
      await held.sh(
        `${as} initdb -A trust -N -U held -D data >/dev/null && ${as} pg_ctl -D data -o '-k ${at}' -l log -w start >/dev/null`,
      );
      const sql = (text: string): Promise<string> => held.sh(`psql -Atqd postgres -c "${text}"`);
      await sql("create table t (n int); insert into t values (1)");
      await held.sh(
        "mkfifo ask; sleep 100000 >ask & psql -Atqd postgres <ask >>said & echo 'begin; insert into t values (10);' >ask",
      );
      await held.sh("echo 'select sum(n) from t;' >ask; until grep -q 11 said; do sleep 0.01; done");
      const checkpoint = await held.checkpoint();
      expect(checkpoint.problems).toEqual([]);
      expect(await sql("insert into t values (2); select sum(n) from t")).toBe("3");
      await held.sh("pkill -9 postgres; rm -rf data/base");
      for (let round = 0; round < 2; round++) {
        expect((await held.back(checkpoint)).notRestored).toEqual([]);
        expect(await sql("select sum(n) from t")).toBe("1");
        await held.sh("echo 'commit; select sum(n) + 1000 from t;' >ask; until grep -q 1011 said; do sleep 0.01; done");
        expect(await sql("select sum(n) from t")).toBe("11");
      }
    },
  );

  test.skipIf(lacking("archive"))("Redis, installed in the sandbox by a user who may use sudo", async () => {
    held = await Held.open({ network: "host" });
    await held.sh(`(apt-get update && ${install} sudo && useradd -m maker) >/dev/null 2>&1`);
    await held.sh("echo 'maker ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/maker");
    await held.sh(`su maker -c "sudo -n ${install} redis-server" >/dev/null 2>&1`);
    expect(existsSync("/etc/sudoers.d/maker")).toBe(false);
    await held.sh(
      "redis-server --port 0 --unixsocket /tmp/redis.sock --daemonize yes >/dev/null; until [ -S /tmp/redis.sock ]; do sleep 0.01; done",
    );
    const redis = (command: string): Promise<string> => held.sh(`redis-cli -s /tmp/redis.sock ${command}`);
    await redis("set n 1");
    const checkpoint = await held.checkpoint();
    await redis("incr n");
    await held.sh("pkill redis-server; rm -f $(command -v redis-server)");
    for (let round = 0; round < 2; round++) {
      await held.back(checkpoint);
      expect(await redis("incr n")).toBe("2");
    }
    await held.sh("redis-server --version");
  });
});
