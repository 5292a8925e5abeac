// A thread whose files are of every kind, in a bundle, and what the place looks like that it comes to.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { join } from "node:path";
import type { Rewind } from "agentrewind";
import { lacking } from "../capabilities.ts";
import { digestTree } from "../helpers/digest.ts";
import { digestInodes } from "../helpers/inode.ts";
import { endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";

export const sh = (cwd: string, command: string): string =>
  execFileSync("bash", ["--norc", "-c", command], { cwd, encoding: "utf8", stdio: "pipe" });

const states = [
  `mkdir -p d/sub empty; echo 1 > a; ln a d/hard; ln -s /etc/passwd l; ln -s ../.. up; echo 1 > d/sub/g; mkfifo p; echo 1 > shut; chmod 400 shut; chmod 2711 d/sub
   truncate -s 3M sparse; printf x | dd of=sparse bs=1 seek=2000000 conv=notrunc 2>/dev/null; head -c 700000 /dev/urandom > big
   printf 1 > $'line\\nend'; printf 2 > $'\\xff\\xfe'; printf 3 > '-rf'; mkdir -p $'\\e[31m'; touch -d '2020-01-02 03:04:05.123456789' a d/sub/g d/sub; touch -d '1999-01-01 00:00:00.5' .`,
  "echo 2 > a; rm l; echo 2 > new; rm -r empty; head -c 300000 /dev/zero > zeros",
  "rm -rf d; echo 3 > a; ln -s new l",
] as const;

export const context = (...messages: string[]) => ({ messages });

export interface Exporter {
  readonly place: Place;
  readonly rewind: Rewind;
  /** Of c0, c1 and c2. */
  readonly trees: readonly string[][];
}

/** As much as this machine can tell of a tree. */
export const digest = (folder: string): string[] =>
  lacking("native", "python") ? digestTree(folder) : digestInodes(folder);

/** c0 to c2 of thread "t"; a rewind to c1 with a lesson, and c3 behind it. */
export async function makeExporter(): Promise<Exporter> {
  const place = makePlace();
  const rewind = await useRewind(place, { effects: { mail: { class: "irreversible" } } });
  const thread = rewind.thread("t");
  const trees: string[][] = [];
  for (const [index, script] of states.entries()) {
    sh(place.workspace, script);
    if (index === 0 && !lacking("attributes", "root")) {
      const { setXattr } = await import("../helpers/xattrs.ts");
      setXattr(place.workspace, "a", "user.note", "kept");
      setXattr(place.workspace, "d", "trusted.note", "kept");
      execFileSync("mknod", [join(place.workspace, "node"), "c", "1", "3"]);
      fs.chownSync(join(place.workspace, "shut"), 12_345, 54_321);
    }
    trees.push(digest(place.workspace));
    const messages = Array.from({ length: index + 1 }, (_, n) => `m${n}`);
    await thread.checkpoint({ context: context(...messages), label: `state ${index}` });
    await thread.runTool({ tool: "mail", args: { n: index }, callId: `call-${index}` }, () => `sent ${index}`);
  }
  await thread.rewind({ to: "c1", lesson: "d was needed" });
  await thread.checkpoint({ context: context("m0", "m1", "again") });
  return { place, rewind, trees };
}

/** Where nothing is yet. */
export function makeTarget(): { readonly base: string; readonly store: string; into(name: string): string } {
  const { base, store } = makePlace();
  return { base, store, into: (name) => join(base, name) };
}

export async function exported(exporter: Exporter, name = "t.bundle", checkpoint?: string): Promise<string> {
  const to = join(exporter.place.base, name);
  await exporter.rewind.export({ to, ...(checkpoint === undefined ? {} : { checkpoint }) });
  return to;
}

/** Everything below a folder, as one text. */
export const everything = (folder: string): string =>
  fs.existsSync(folder) ? sh(folder, "find . -printf '%p %y %s %m\\n' | sort") : "";

export { endSession };
