// The two scanners: equal trees give equal snapshots, and what did not change is not read.
import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import type { Scanner } from "../src/environment/directory/scanner.ts";
import { lacking } from "./capabilities.ts";
import { bench, closeBenches } from "./helpers/scanning.ts";
import { makePlace, type Place } from "./helpers/workspace.ts";

const noAddon = lacking("native");

afterEach(closeBenches);

/** Of everything that both ways capture; times to the microsecond. */
function plant(place: Place): void {
  const sh = (command: string): void => {
    execFileSync("bash", ["--norc", "-ec", command], { cwd: place.workspace });
  };
  sh(`mkdir -p a/b/c empty many x; echo 1 > a/f; echo 2 > a/b/g; ln -s ../f a/b/link; ln a/f z-hard; ln a/f a/b/c/hard; mkfifo x/pipe
      head -c 300000 /dev/urandom > big; head -c 262144 /dev/urandom > block; head -c 524288 /dev/zero > zeros
      truncate -s 5M sparse; printf end >> sparse; truncate -s 262144 hole; : > nothing; chmod 4711 a/f; chmod 700 empty
      seq 3000 | (cd many; xargs touch); for i in $(seq 200); do echo $i > x/file-$i; done; ln -s dangling x/link`);
  for (const name of ["new\nline", "-dash", " space", '"quote"', "\u00e4\u6f22", "a.b", "a-b"])
    fs.writeFileSync(join(place.workspace, name), name);
  fs.writeFileSync(Buffer.concat([Buffer.from(`${place.workspace}/`), Buffer.from([0xff, 0xfe])]), "raw");
  sh("find . -depth -exec touch -h -d '2024-05-06 07:08:09.123456' {} +");
}

async function imageOf({ base }: Place, scanner: Scanner): Promise<Buffer> {
  const path = join(base, "image");
  const fd = fs.openSync(path, "w");
  const size = await scanner.save(fd, 3);
  fs.closeSync(fd);
  expect(fs.statSync(path).size).toBe(3 + size);
  return fs.readFileSync(path).subarray(3);
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));

describe.skipIf(noAddon)("both ways", () => {
  test("F-8, F-10: equal trees have equal names, at first and after changes", async () => {
    const place = makePlace();
    plant(place);
    const native = bench(place, "native");
    const portable = bench(place, "portable");
    const steps: (() => void)[] = [
      () => {},
      () => fs.appendFileSync(join(place.workspace, "big"), "more"),
      () => fs.rmSync(join(place.workspace, "a/f")),
      () => fs.renameSync(join(place.workspace, "a"), join(place.workspace, "zz")),
      () => fs.rmSync(join(place.workspace, "many"), { recursive: true }),
      () =>
        execFileSync("bash", ["--norc", "-c", "rm -r x; echo file > x; rm nothing; mkdir -p nothing/in"], {
          cwd: place.workspace,
        }),
    ];
    for (const step of steps) {
      step();
      execFileSync("find", [place.workspace, "-exec", "touch", "-h", "-d", "2024-05-06 07:08:09.123456", "{}", "+"]);
      const one = await native.scan();
      const other = await portable.scan();
      expect(one.tree).toBe(other.tree);
      expect({ entries: one.entries, bytes: one.bytes }).toEqual({ entries: other.entries, bytes: other.bytes });
      expect(native.scanner.groups()).toEqual(portable.scanner.groups());
      await settle();
    }
  });
});

for (const way of ["native", "portable"] as const) {
  describe.skipIf(way === "native" && noAddon)(way, () => {
    test("a second scan of an unchanged tree stores nothing and gives the same snapshot, in the next process as well", async () => {
      const place = makePlace();
      plant(place);
      await settle();
      const { scanner, scan } = bench(place, way);
      const first = await scan();
      expect(first.written).toBeGreaterThan(500_000);
      const second = await scan();
      expect(second.written).toBe(0);
      expect(second.snapshot).toEqual(first.snapshot);
      const image = await imageOf(place, scanner);
      const next = bench(place, way);
      expect(await next.scanner.load(image, null)).toBe(true);
      const third = await next.scan();
      expect(third.snapshot).toEqual(first.snapshot);
      // Into an empty store goes only what a scan reads: here the snapshot itself.
      expect(third.written).toBeLessThan(200);
    });

    test("what changed in a run of the machine that may have lost it is read again", async () => {
      const place = makePlace();
      plant(place);
      await settle();
      const { scanner, scan } = bench(place, way);
      await scan();
      const image = await imageOf(place, scanner);
      const { scanner: next, scan: scanNext } = bench(place, way);
      expect(await next.load(image, BigInt(Date.now() - 3_600_000) * 1_000_000n)).toBe(true);
      expect((await scanNext()).written).toBeGreaterThan(500_000);
    });

    test("an image that is cut, damaged or another way's is refused", async () => {
      const place = makePlace();
      plant(place);
      const { scanner, scan } = bench(place, way);
      await scan();
      const image = await imageOf(place, scanner);
      const { scanner: fresh } = bench(place, way);
      for (const wrong of [image.subarray(0, image.length - 1), image.subarray(1), Buffer.alloc(0), Buffer.from("{}")])
        expect(await fresh.load(wrong, null)).toBe(false);
      image.writeUInt8(image.readUInt8(image.length >> 1) ^ 1, image.length >> 1);
      expect(await fresh.load(image, null)).toBe(false);
    });

    test("what is excluded and the staging folder are out of sight, also when they come later", async () => {
      const place = makePlace();
      plant(place);
      const excluded = (path: string): boolean => path === "many" || path.endsWith(".log");
      const { scan } = bench(place, way, { excluded });
      const first = await scan();
      fs.writeFileSync(join(place.workspace, "many", "new"), "new");
      fs.writeFileSync(join(place.workspace, "x", "later.log"), "log");
      fs.mkdirSync(join(place.workspace, ".stage"));
      execFileSync("touch", ["-d", "2024-05-06 07:08:09.123456", place.workspace, join(place.workspace, "x")]);
      const second = await scan();
      expect(second.tree).toBe(first.tree);
    });

    test("a scan that is given up says so, and the next one is whole", async () => {
      const place = makePlace();
      plant(place);
      const { scan } = bench(place, way);
      await expect(scan(AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
      const controller = new AbortController();
      const running = scan(controller.signal);
      setImmediate(() => controller.abort(new Error("enough")));
      await running.then(
        () => {},
        (error: Error) => expect(error.message).toBe("enough"),
      );
      const { scan: other } = bench(place, way);
      expect((await scan()).snapshot).toEqual((await other()).snapshot);
    });

    test("times of access stay as they are", async () => {
      const place = makePlace();
      plant(place);
      execFileSync("find", [place.workspace, "-exec", "touch", "-h", "-a", "-d", "2001-01-01", "{}", "+"]);
      const { scan } = bench(place, way);
      await scan();
      const moved = execFileSync("find", [place.workspace, "-newerat", "2001-01-02", "-not", "-type", "l"], {
        encoding: "utf8",
      });
      if (way === "native") expect(moved).toBe("");
    });
  });
}

describe.skipIf(noAddon)("writers that are held still", () => {
  test("a database that never rests is stored as of one moment, and its writer goes on", async () => {
    const place = makePlace();
    const writer = spawn(process.execPath, [join(import.meta.dirname, "fixtures/busy-group.mjs"), place.workspace], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void writer.kill("SIGKILL"));
    const beats = (): number => Number(fs.readFileSync(join(place.workspace, "beats"), "utf8").slice(-8));
    await new Promise((resolve) => writer.stdout.once("data", resolve));
    const { scan } = bench(place, "native");
    for (let round = 0; round < 5; round++) {
      const { problems } = await scan();
      expect(problems.filter(({ path }) => path.startsWith("group"))).toEqual([]);
      const before = beats();
      await expect.poll(beats).toBeGreaterThan(before);
    }
  });
});
