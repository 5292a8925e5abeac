// Files and folders that permissions or flags protect: what can come back does, what cannot is named, nothing is lost.
import * as fs from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { digestInodes, setFlag } from "../helpers/inode.ts";
import { runSteps, type StepResult } from "../helpers/steps.ts";
import { makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { onBothPaths, sh, workload } from "./workload.ts";

const isRoot = !lacking("root");
const nobody = 65534;

const locked = [0o000, 0o111, 0o444, 0o333, 0o555].map((mode) => `m${mode.toString(8).padStart(3, "0")}`);
const eachLocked = (command: string): string =>
  locked.map((name) => command.replaceAll("$D", name).replaceAll("$M", name.slice(1))).join("\n");

workload("folders without permissions, as root", {
  needs: ["root"],
  build: (root) =>
    sh(root, `${eachLocked("mkdir -p $D/in; echo 1 > $D/f; echo 1 > $D/in/f; chmod $M $D/in $D")}\nchmod 0 .`),
  change: (root) => sh(root, `${eachLocked("echo 2 > $D/f; rm $D/in/f; echo 1 > $D/new; chmod 755 $D")}\nchmod 755 .`),
});

describe.skipIf(lacking("python"))("as an ordinary user", () => {
  function ownedPlace(): Place {
    const place = makePlace();
    if (isRoot) for (const path of [place.base, place.workspace]) fs.chownSync(path, nobody, nobody);
    return place;
  }
  const run = (place: Place, ...steps: Parameters<typeof runSteps>[1]): readonly StepResult[] =>
    runSteps(
      {
        ...place,
        env: { HOME: place.base, ...(process.env.AGENTREWIND_NATIVE ? { AGENTREWIND_NATIVE: "off" } : {}) },
        ...(isRoot ? { uid: nobody } : {}),
      },
      [{ op: "open" }, ...steps],
    ).results;
  const pathsOf = (result: StepResult | undefined, list: "problems" | "notRestored"): string[] =>
    result?.ok[list].map((one: { path: string }) => one.path).sort();

  onBothPaths(
    "folders without permissions: those that cannot be read are named and left as they are",
    {},
    async (times) => {
      const place = ownedPlace();
      const made = run(
        place,
        { op: "sh", command: eachLocked("mkdir -p $D/in; echo 1 > $D/f; echo 1 > $D/in/f") },
        { op: "sh", command: "echo 1 > beside" },
        { op: "sh", command: eachLocked("chmod $M $D/in $D") },
        { op: "checkpoint" },
      );
      // Of 444 the names can be read but nothing behind them; of 111 and 333 not even those.
      expect(pathsOf(made[4], "problems")).toEqual(["m000", "m111", "m333", "m444"]);
      const before = digestInodes(place.workspace, { times });
      const back = run(
        place,
        { op: "sh", command: "echo 2 > beside; chmod 755 m555 m555/in; echo 2 > m555/in/f; rm m555/f; chmod 500 m555" },
        { op: "rewind", to: "c0" },
        { op: "verify" },
      );
      expect(back[2]?.message).toBeUndefined();
      expect(pathsOf(back[2], "notRestored")).toEqual([]);
      expect(back[3]?.ok).toEqual([]);
      expect(digestInodes(place.workspace, { times })).toEqual(before);
    },
  );

  onBothPaths("folders that lost their permissions since, and files in them", {}, async (times) => {
    const place = ownedPlace();
    run(
      place,
      { op: "sh", command: eachLocked("mkdir -p $D/in; echo 1 > $D/f; echo 1 > $D/in/f; chmod 750 $D") },
      { op: "sh", command: "echo 1 > beside" },
      { op: "checkpoint" },
    );
    const before = digestInodes(place.workspace, { times });
    const locking = run(
      place,
      { op: "sh", command: "echo 2 > beside; echo 2 > m555/f; rm m555/in/f" },
      { op: "sh", command: eachLocked("chmod $M $D/in $D") },
      { op: "rewind", to: "c0" },
    );
    expect(pathsOf(locking[3], "notRestored")).toEqual(["m000", "m111", "m333", "m444"]);
    expect(sh(place.workspace, "cat beside m555/f m555/in/f")).toBe("1\n1\n1\n");
    // What is named can be mended by hand, and then everything comes back.
    const opened = run(
      place,
      { op: "sh", command: eachLocked("chmod 755 $D; chmod 755 $D/in") },
      { op: "rewind", to: "c0" },
    );
    expect(pathsOf(opened[2], "notRestored")).toEqual([]);
    expect(digestInodes(place.workspace, { times })).toEqual(before);
  });

  onBothPaths("read-only files in read-only folders", {}, async (times) => {
    const place = ownedPlace();
    run(
      place,
      {
        op: "sh",
        command:
          "mkdir -p ro/in; echo 1 > ro/f; echo 1 > ro/in/g; ln ro/f ro/h; ln -s f ro/l; chmod 444 ro/f ro/in/g; chmod 555 ro/in ro .",
      },
      { op: "checkpoint" },
    );
    const before = digestInodes(place.workspace, { times });
    const back = run(
      place,
      {
        op: "sh",
        command: "chmod 755 . ro ro/in; rm -f ro/f ro/in/g ro/l; echo 2 > ro/f; mkdir ro/in/d; chmod 555 ro/in ro .",
      },
      { op: "rewind", to: "c0" },
    );
    expect(back[2]?.message).toBeUndefined();
    expect(pathsOf(back[2], "notRestored")).toEqual([]);
    expect(digestInodes(place.workspace, { times })).toEqual(before);
  });

  onBothPaths("files of another user", { needs: ["root"] }, async () => {
    const place = ownedPlace();
    sh(
      place.workspace,
      "echo 1 > theirs; chmod 644 theirs; mkdir theirs.d; echo 1 > theirs.d/f; echo 1 > secret; chmod 600 secret",
    );
    const made = run(place, { op: "sh", command: "echo 1 > mine" }, { op: "checkpoint" });
    expect(pathsOf(made[2], "problems")).toEqual(["secret"]);
    sh(place.workspace, "echo 2 > theirs; rm theirs.d/f; echo 2 > secret");
    const back = run(place, { op: "sh", command: "echo 2 > mine" }, { op: "rewind", to: "c0" }, { op: "verify" });
    expect(back[2]?.message).toBeUndefined();
    expect(sh(place.workspace, "cat mine secret")).toBe("1\n2\n");
    // A file in a folder of one's own can be replaced; one in a folder of somebody else cannot, and neither gets its owner back.
    expect(pathsOf(back[2], "notRestored")).toContain("theirs.d/f");
    expect(back[3]?.ok).toEqual([]);
  });

  onBothPaths("F-12: what cannot be read and changed or went since is named", { needs: ["root"] }, async () => {
    const place = ownedPlace();
    sh(
      place.workspace,
      "for f in same changed moded gone came; do echo 1 > $f; chmod 600 $f; done; mkdir -m 700 d; echo 1 > d/f",
    );
    sh(place.workspace, "mv came ..");
    const [, made] = run(place, { op: "checkpoint" });
    expect(pathsOf(made, "problems")).toEqual(["changed", "d", "gone", "moded", "same"]);
    sh(place.workspace, "echo 22 > changed; chmod 640 moded; rm gone; rm d/f; mv ../came .; cat same");
    const [, back, again] = run(place, { op: "rewind", to: "c0" }, { op: "rewind", to: "c0" });
    for (const result of [back, again]) {
      expect(pathsOf(result, "notRestored")).toEqual(["came", "changed", "d", "gone", "moded"]);
      for (const { path, reason } of (result as StepResult).ok.notRestored)
        expect(reason).toBe(
          path === "came" ? "cannot be read (EACCES); left as it is" : "was not captured; left as it is",
        );
    }
    expect(sh(place.workspace, "cat changed")).toBe("22\n");
  });

  onBothPaths(
    "a group that the user may not give is named with the reason, and not counted as restored",
    {
      needs: ["root"],
    },
    async (times) => {
      const place = ownedPlace();
      const group = 4242;
      sh(
        place.workspace,
        "echo 1 > meta; echo 1 > content; echo 1 > gone; mkdir folder; ln -s content link; echo 1 > fine",
      );
      sh(place.workspace, `chown -h ${nobody}:${group} * .; chmod 2755 folder; chmod 4750 content`);
      run(place, { op: "checkpoint" });
      const before = digestInodes(place.workspace, { times });
      sh(
        place.workspace,
        `chgrp -h ${nobody} *; chmod 600 meta; echo 2 > content; rm gone; touch -h link; echo 2 > fine; chgrp ${group} fine`,
      );
      const [, back, again] = run(place, { op: "rewind", to: "c0" }, { op: "rewind", to: "c0" });
      const problems = ["content", "fine", "folder", "gone", "link", "meta"];
      // A new file gets the group of the process.
      for (const result of [back, again]) {
        expect(result?.message).toBeUndefined();
        expect(pathsOf(result, "notRestored")).toEqual(problems);
        const { notRestored, restored } = (result as StepResult).ok;
        for (const { reason } of notRestored) expect(reason).toBe("its owner or group could not be restored (EPERM)");
        const { added, removed, changed, mode, type } = restored;
        expect([...added, ...removed, ...changed, ...mode, ...type]).toEqual([]);
      }
      // Everything else of them is back.
      const withoutGroup = (lines: string[]): string[] => lines.map((line) => line.replace(/ 65534:\d+ /, " "));
      expect(withoutGroup(digestInodes(place.workspace, { times }))).toEqual(withoutGroup(before));
    },
  );
});

describe("immutable and append-only", () => {
  const flagged: string[] = [];
  const flag = (path: string, change: "+i" | "+a"): void => {
    flagged.push(path);
    setFlag(change, path);
  };
  const clear = (): void => {
    for (const path of flagged.splice(0)) {
      if (fs.existsSync(path)) for (const change of ["-i", "-a"] as const) setFlag(change, path);
    }
  };
  afterEach(clear);

  onBothPaths(
    "files that cannot be changed are named, the rest comes back, and so do they once that is over",
    {
      needs: ["immutable"],
    },
    async (times) => {
      const place = makePlace();
      const { workspace } = place;
      const at = (path: string): string => join(workspace, path);
      sh(
        workspace,
        "mkdir -p d/in e; for f in f log mode d/f d/in/f e/f; do echo 1 > $f; done; chmod 644 mode; ln f linked",
      );
      const thread = (await useRewind(place)).thread("t");
      const before = digestInodes(workspace, { times });
      const c0 = await thread.checkpoint();
      expect(c0.problems).toEqual([]);
      sh(workspace, "for f in f log d/f d/in/f e/f; do echo 2 >> $f; done; chmod 600 mode; echo 1 > d/new; rm e/f");
      for (const path of ["f", "mode", "d/in", "d"]) flag(at(path), "+i");
      flag(at("log"), "+a");
      const held = ["f", "log", "mode", "d/f", "d/in/f", "d/new"].map(
        (path) => fs.statSync(at(path), { bigint: true }).mtimeNs,
      );

      const back = await thread.rewind({ to: "c0" });
      const named = back.notRestored.map((one) => one.path);
      expect(named).toEqual(expect.arrayContaining(["f", "log", "mode", "d/f", "d/in/f", "d/new"]));
      for (const { reason } of back.notRestored) expect(reason).toMatch(/EPERM|immutable|append|is a name of f/);
      expect(fs.readFileSync(at("e/f"), "utf8"), "the rest comes back").toBe("1\n");
      expect(
        ["f", "log", "mode", "d/f", "d/in/f", "d/new"].map((path) => fs.statSync(at(path), { bigint: true }).mtimeNs),
        "what is named is as it was left",
      ).toEqual(held);
      expect(fs.readdirSync(workspace).sort()).toEqual(["d", "e", "f", "linked", "log", "mode"]);

      clear();
      const again = await thread.rewind({ to: "c0" });
      expect(again.notRestored).toEqual([]);
      expect(digestInodes(workspace, { times })).toEqual(before);
    },
  );

  onBothPaths(
    "of a hard-link group every name is right or named when its first cannot be changed",
    { needs: ["immutable"] },
    async () => {
      const place = makePlace();
      const { workspace } = place;
      sh(workspace, "mkdir d; echo 1 > d/first; ln d/first other");
      const thread = (await useRewind(place)).thread("t");
      await thread.checkpoint();
      sh(workspace, "echo 2 > other");
      flag(join(workspace, "d"), "+i");
      const named = (await thread.rewind({ to: "c0" })).notRestored.map((one) => one.path);
      expect(named).toContain("d/first");
      if (!named.includes("other")) expect(fs.readFileSync(join(workspace, "other"), "utf8")).toBe("1\n");
    },
  );

  onBothPaths("in an immutable workspace nothing is touched", { needs: ["immutable"] }, async (times) => {
    const place = makePlace();
    const { workspace } = place;
    sh(workspace, "mkdir d; echo 1 > f; echo 1 > d/f");
    const thread = (await useRewind(place)).thread("t");
    const before = digestInodes(workspace, { times });
    await thread.checkpoint();
    sh(workspace, "echo 2 > f; echo 2 > d/f; rm -r d; mkdir d");
    const changed = digestInodes(workspace, { times });
    flag(workspace, "+i");
    const said = await thread.rewind({ to: "c0" }).then(
      (result) => ({ code: undefined, paths: result.notRestored.map((one) => one.path) }),
      (error) => ({ code: error.code as string, paths: [] as string[] }),
    );
    // Either nothing could be done and nothing was, or what could not be done is named.
    if (said.code === undefined) expect(said.paths).toContain("f");
    else expect(digestInodes(workspace, { times })).toEqual(changed);
    clear();
    await thread.rewind({ to: "c0" });
    expect(digestInodes(workspace, { times })).toEqual(before);
  });
});

test.skipIf(lacking("root", "python"))("a write-protected file system is an error, and nothing is lost", async () => {
  const place = makePlace();
  const { workspace } = place;
  sh(workspace, "echo 1 > f; mkdir d; echo 1 > d/f");
  const thread = (await useRewind(place)).thread("t");
  const before = digestInodes(workspace);
  await thread.checkpoint();
  sh(workspace, "echo 2 > f; rm d/f");
  const changed = digestInodes(workspace);
  sh(place.base, "mount --bind workspace workspace && mount -o remount,bind,ro workspace");
  try {
    await expect(thread.rewind({ to: "c0" })).rejects.toThrow();
    expect(digestInodes(workspace)).toEqual(changed);
  } finally {
    sh(place.base, "umount -l workspace");
  }
  await thread.rewind({ to: "c0" });
  expect(digestInodes(workspace)).toEqual(before);
});
