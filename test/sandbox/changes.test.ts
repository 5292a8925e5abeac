// What a sandbox's user is told of two states: the merged view, by real overlays.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FileChanges } from "../../src/environment/environment.ts";
import { fileChanges, type LayerRoot } from "../../src/environment/sandbox/changes.ts";
import type { Layers } from "../../src/environment/sandbox/layers/layers.ts";
import { lacking } from "../capabilities.ts";
import { makePlace, native, type Place, useLayers } from "./place.ts";

const kinds = [
  { kind: "btrfs", lacks: lacking("native", "root", "loop", "btrfs") },
  { kind: "copy", lacks: lacking("native", "root") },
] as const;

describe.each(kinds)("changes in an overlay over layers of kind $kind", ({ kind, lacks }) => {
  const when = test.skipIf(lacks);

  async function open(base: string) {
    const place = makePlace();
    const layers = await useLayers(place, kind);
    const lower = join(place.base, "lower");
    fs.mkdirSync(lower);
    execFileSync("bash", ["--norc", "-ec", base], { cwd: lower });
    const roots: LayerRoot[] = [
      { layer: "root", at: "/", lowers: [lower] },
      { layer: "tmp", at: "/tmp" },
    ];
    inside(place, layers, "true");
    let last = (await layers.snapshot()).name;
    const first = last;
    return {
      place,
      layers,
      first,
      roots,
      run: (command: string) => inside(place, layers, command),
      changes: (from: string, to: string) => tell(layers, roots, from, to),
      /** What the command changed, and that taking it back says the opposite. */
      async changed(command: string): Promise<Partial<FileChanges>> {
        inside(place, layers, command);
        const before = last;
        last = (await layers.snapshot()).name;
        const forward = await tell(layers, roots, before, last);
        const back = await tell(layers, roots, last, before);
        expect(back.added ?? []).toEqual(forward.removed ?? []);
        expect(back.removed ?? []).toEqual(forward.added ?? []);
        expect(back.changed ?? []).toEqual(forward.changed ?? []);
        expect(back.type ?? []).toEqual(forward.type ?? []);
        const turned = (back.renamed ?? []).map(({ from, to }) => ({ from: to, to: from }));
        expect(turned).toEqual(expect.arrayContaining([...(forward.renamed ?? [])]));
        return forward;
      },
    };
  }

  function inside(place: Place, layers: Layers, command: string): void {
    const merged = join(place.base, "merged");
    for (const folder of [merged, ...["root", "root.work", "tmp"].map((name) => join(layers.live(), name))])
      fs.mkdirSync(folder, { recursive: true });
    const options = `lowerdir=${place.base}/lower,upperdir=${layers.live()}/root,workdir=${layers.live()}/root.work`;
    const mounts = `mount -t overlay -o noatime,${options} overlay ${merged}; mkdir -p ${merged}/tmp; mount --bind ${layers.live()}/tmp ${merged}/tmp`;
    execFileSync(
      "unshare",
      ["-m", "--propagation", "private", "bash", "--norc", "-ec", `${mounts}; cd ${merged}; ${command}`],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
  }

  /** Without what is empty, and without the folders whose time moved with their names. */
  async function tell(layers: Layers, roots: LayerRoot[], from: string, to: string): Promise<Partial<FileChanges>> {
    const found = await fileChanges({ native, layers, roots, workspace: "/work" }, from, to);
    const sorted = Object.entries(found).map(([key, list]) => [
      key,
      key === "mode"
        ? list.filter((path: string) => path.includes("mode"))
        : [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    ]);
    return Object.fromEntries(sorted.filter(([, list]) => (list as unknown[]).length > 0));
  }

  when("files of the lower layer are changed, removed, touched; others come and go", async () => {
    const { changed } = await open(
      "mkdir -p work/d etc home tmp; echo 1 > work/a; echo 1 > work/d/b; echo 1 > etc/conf; echo 1 > work/mode; echo same > work/same; echo 1 > work/gone",
    );
    expect(
      await changed(
        "cd work; echo 2 > a; rm gone; echo n > new; chmod 600 mode; cp -p same s; cat s > same; rm s; echo 2 > ../etc/conf; echo t > ../tmp/t",
      ),
    ).toEqual({
      changed: ["/etc/conf", "a"],
      removed: ["gone"],
      added: ["/tmp/t", "new"],
      mode: ["mode"],
    });
    expect(await changed("cd work; echo 3 > a; rm new; echo back > gone; rm ../tmp/t")).toEqual({
      changed: ["a"],
      removed: ["/tmp/t", "new"],
      added: ["gone"],
    });
    expect(await changed("rm work/a")).toEqual({ removed: ["a"] });
    expect(await changed("true")).toEqual({});
  });

  when("case 105: a folder made anew tells what the lower one had; so does one that is removed", async () => {
    const { changed, layers, first, changes } = await open(
      "mkdir -p work/d/sub/deep work/e tmp; echo 1 > work/d/a; echo 1 > work/d/sub/b; echo 1 > work/d/sub/deep/c; echo 1 > work/e/x",
    );
    expect(await changed("cd work; rm -r d; mkdir d; echo n > d/n; echo other > d/a")).toEqual({
      removed: ["d/sub", "d/sub/b", "d/sub/deep", "d/sub/deep/c"],
      added: ["d/n"],
      changed: ["d/a"],
    });
    expect(await changed("mkdir work/d/sub; echo n > work/d/sub/b")).toEqual({ added: ["d/sub", "d/sub/b"] });
    expect(await changed("rm -r work/e")).toEqual({ removed: ["e", "e/x"] });
    expect(await changed("echo file > work/e")).toEqual({ added: ["e"] });
    expect(await changed("rm -r work/d; echo file > work/d")).toEqual({
      removed: ["d/a", "d/n", "d/sub", "d/sub/b"],
      type: ["d"],
    });
    const last = layers.names().at(-1) as string;
    expect(await changes(first, last)).toEqual({
      removed: ["d/a", "d/sub", "d/sub/b", "d/sub/deep", "d/sub/deep/c", "e/x"],
      type: ["d", "e"],
    });
  });

  when("renames of files and of folders", async () => {
    const { changed } = await open(
      "mkdir -p work/d/sub tmp; echo longer > work/a; echo 1 > work/d/sub/b; echo 22 > work/d/c",
    );
    const first = await changed("mv work/a work/z; mv work/d work/e");
    expect(first).toEqual({
      renamed: [
        { from: "a", to: "z" },
        { from: "d/c", to: "e/c" },
        { from: "d/sub/b", to: "e/sub/b" },
      ],
      removed: ["d", "d/sub"],
      added: ["e", "e/sub"],
    });
    expect(await changed("mv work/z work/y")).toEqual({ renamed: [{ from: "z", to: "y" }] });
  });

  when("what another mount covers is told there alone, names as they are shown", async () => {
    const { changed, layers } = await open("mkdir -p work tmp; echo 1 > tmp/covered");
    fs.writeFileSync(join(layers.live(), "root", "hidden"), "x");
    expect(await changed("printf x > $'work/nl\\nname'; printf x > $'work/\\xff'; echo 1 > tmp/covered")).toEqual({
      added: ["/hidden", "/tmp/covered", '"\\xff"', '"nl\\nname"'],
    });
  });
});
