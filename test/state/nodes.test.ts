// FIFOs, device nodes, and sockets, which are named and left in place.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { makePlace, useRewind } from "../helpers/workspace.ts";
import { onBothPaths, sh, workload } from "./workload.ts";

workload("FIFOs, with modes and times", {
  nativeOnly: true,
  build: (root) => sh(root, "mkdir d; mkfifo -m 604 p; mkfifo d/q; touch -d 2001-02-03 d/q; echo 1 > f"),
  change: (root) => sh(root, "rm p; echo 1 > p; rm d/q; mkdir d/q; rm f; mkfifo f"),
});

workload("device nodes, with large numbers, modes and owners", {
  needs: ["root"],
  nativeOnly: true,
  build: (root) =>
    sh(
      root,
      `mknod zero c 1 5; mknod disk b 259 1048575; mknod big c 4095 70000; mkdir d; mknod d/none c 0 0
       chmod 4640 disk; chown 12:34 big; touch -d 2001-02-03 zero`,
    ),
  change: (root) =>
    sh(
      root,
      "rm zero; mknod zero c 1 3; rm disk; mknod disk c 259 1048575; rm big; mkfifo big; rm -r d; mknod d b 7 0",
    ),
});

/** Left behind by a process that has ended. */
function socket(path: string): void {
  const code = `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 9))`;
  try {
    execFileSync(process.execPath, ["-e", code], { stdio: "pipe" });
  } catch {
    // It ended by its own signal.
  }
}

onBothPaths("sockets are named, stay in place, and stop nothing", {}, async () => {
  const place = makePlace();
  const { workspace } = place;
  sh(workspace, "mkdir -p d/e; echo 1 > f; echo 1 > d/e/f");
  for (const name of ["s", "d/e/s"]) socket(join(workspace, name));
  const inodes = (): number[] => ["s", "d/e/s"].map((name) => fs.lstatSync(join(workspace, name)).ino);
  const before = inodes();
  const thread = (await useRewind(place)).thread("t");
  const c0 = await thread.checkpoint();
  expect([...c0.problems].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual(
    ["d/e/s", "s"].map((path) => ({ path, reason: expect.stringContaining("is a socket") as string })),
  );
  sh(workspace, "echo 2 > f; rm d/e/f; echo 1 > d/new");
  const back = await thread.rewind({ to: "c0" });
  expect(back.notRestored).toEqual([]);
  expect(sh(workspace, "cat f d/e/f; ls d")).toBe("1\n1\ne\n");
  expect(inodes()).toEqual(before);

  fs.rmSync(join(workspace, "s"));
  socket(join(workspace, "fresh"));
  const again = await thread.rewind({ to: "c0" });
  expect(again.notRestored.map((one) => one.path).sort(), "one is gone, one is new").toEqual(["fresh", "s"]);
  expect(fs.lstatSync(join(workspace, "fresh")).isSocket()).toBe(true);
});
