// Mounts inside of the workspace: brought back wholly, or left wholly and named.
import * as fs from "node:fs";
import { join } from "node:path";
import { afterEach, expect } from "vitest";
import { makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { onBothPaths, sh } from "./workload.ts";

const mounts: string[] = [];
const mount = (options: string, at: string): void => {
  sh("/", `mount ${options} '${at}'`);
  mounts.push(at);
};
afterEach(() => {
  for (const at of mounts.splice(0).reverse()) sh("/", `umount -l '${at}'`);
});

interface Mounted {
  readonly place: Place;
  /** Where the mount is, and what is mounted there. */
  readonly point: string;
}

const kinds: Record<string, (place: Place) => string> = {
  "a tmpfs": ({ workspace }) => {
    mount("-t tmpfs -o size=8m none", join(workspace, "d/point"));
    return "d/point";
  },
  "a bind mount of a folder outside": ({ base, workspace }) => {
    sh(base, "mkdir outside");
    mount(`--bind '${base}/outside'`, join(workspace, "d/point"));
    return "d/point";
  },
  "a bind mount of a folder of the workspace itself": ({ workspace }) => {
    sh(workspace, "mkdir other");
    mount(`--bind '${workspace}/other'`, join(workspace, "d/point"));
    return "d/point";
  },
};

function mounted(kind: string): Mounted {
  const place = makePlace();
  sh(place.workspace, "mkdir -p d/point; echo under > d/point/under; echo 1 > f; echo 1 > d/f");
  const point = (kinds[kind] as (place: Place) => string)(place);
  sh(join(place.workspace, point), "mkdir sub; echo 1 > edited; echo 1 > sub/removed; echo 1 > same");
  return { place, point };
}

const content = (folder: string): string =>
  sh(folder, 'find . -type f | sort | while read f; do echo "$f $(cat $f)"; done');

for (const kind of Object.keys(kinds)) {
  onBothPaths(`${kind}: changed, and rewound`, { needs: ["tmpfs"], unmended: true }, async () => {
    const { place, point } = mounted(kind);
    const inside = join(place.workspace, point);
    const thread = (await useRewind(place)).thread("t");
    const before = content(inside);
    const c0 = await thread.checkpoint();
    sh(inside, "echo 2 > edited; rm -r sub; echo 2 > new");
    sh(place.workspace, "echo 2 > f; echo 2 > d/f; echo 2 > d/new");
    const left = content(inside);
    const back = await thread.rewind({ to: "c0" });
    expect(sh(place.workspace, "cat f d/f; ls d")).toBe("1\n1\nf\npoint\n");
    const found = content(inside);
    if (found !== before) {
      expect(found, "not half-done").toBe(left);
      const named = [...c0.problems, ...back.notRestored].map((one) => one.path);
      expect(named).toContain(point);
    }
    sh(place.workspace, `umount -l ${point}`);
    mounts.splice(0);
    expect(fs.readFileSync(join(inside, "under"), "utf8"), "what lies under it is as it was").toBe("under\n");
  });

  onBothPaths(`${kind}: mounted since the checkpoint`, { needs: ["tmpfs"], unmended: true }, async () => {
    const place = makePlace();
    sh(place.workspace, "mkdir -p d/point; echo under > d/point/under; echo 1 > f; echo 1 > d/f");
    const thread = (await useRewind(place)).thread("t");
    await thread.checkpoint();
    const inside = join(place.workspace, (kinds[kind] as (place: Place) => string)(place));
    sh(inside, "mkdir sub; echo 1 > sub/precious; echo 1 > precious");
    sh(place.workspace, "echo 2 > f; rm d/f");
    const left = content(inside);
    const back = await thread.rewind({ to: "c0" });
    expect(sh(place.workspace, "cat f d/f")).toBe("1\n1\n");
    expect(content(inside), "nothing was deleted in it").toBe(left);
    expect(back.notRestored.map((one) => one.path)).toContain("d/point");
  });
}
