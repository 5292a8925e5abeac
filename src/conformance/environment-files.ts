// Checks of `readFile`, `writeFile`, `list` and `path`.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { EnvironmentCheck } from "./environment-check.ts";
import { refusal, shell } from "./environment-tools.ts";

const bytes = Uint8Array.from({ length: 1000 }, (_, i) => (i * 7) & 0xff);

export const fileChecks: readonly EnvironmentCheck[] = [
  {
    name: "writeFile writes text and bytes, and makes the folders",
    async check(environment) {
      await environment.writeFile("one/two/bytes", bytes);
      await environment.writeFile("text", "grüße\n");
      assert.equal(await shell(environment, "cat text"), "grüße\n");
      assert.equal(await shell(environment, "stat -c %s one/two/bytes"), "1000\n");
      return undefined;
    },
  },
  {
    name: "writeFile keeps the mode of a file that is there",
    async check(environment) {
      await shell(environment, "echo 1 > tool.sh; chmod 750 tool.sh");
      await environment.writeFile("tool.sh", "2");
      assert.equal(await shell(environment, "cat tool.sh; stat -c ' %a' tool.sh"), "2 750\n");
      return undefined;
    },
  },
  {
    name: "readFile gives the bytes, also of names in other scripts",
    async check(environment) {
      await shell(environment, "mkdir 'ü b'; printf '\\000\\377x' > 'ü b/漢'");
      assert.deepEqual([...(await environment.readFile("ü b/漢"))], [0, 255, 120]);
      return undefined;
    },
  },
  {
    name: "list names the entries of a folder with their kinds",
    async check(environment) {
      await shell(environment, "mkdir d d/folder; echo 1 > d/file; ln -s file d/link");
      const entries = [...(await environment.list("d"))].sort((a, b) => (a.name < b.name ? -1 : 1));
      assert.deepEqual(entries, [
        { name: "file", type: "file" },
        { name: "folder", type: "directory" },
        { name: "link", type: "symlink" },
      ]);
      assert.deepEqual(
        (await environment.list("")).map((one) => one.name),
        ["d"],
      );
      return undefined;
    },
  },
  {
    name: "a path that leads out is refused with PATH_OUTSIDE",
    async check(environment) {
      for (const path of ["../x", "a/../../x", "/etc/passwd"]) {
        assert.equal(await refusal(environment.readFile(path), `reading ${path}`), "PATH_OUTSIDE");
        assert.equal(await refusal(environment.writeFile(path, "x"), `writing ${path}`), "PATH_OUTSIDE");
        assert.equal(await refusal(environment.list(path), `listing ${path}`), "PATH_OUTSIDE");
      }
      return undefined;
    },
  },
  {
    name: "a link that leads out is followed neither for reading nor for writing",
    async check(environment) {
      const outside = (await shell(environment, "mktemp -d")).trim();
      try {
        await shell(
          environment,
          `echo secret > ${outside}/f; ln -s ${outside} out; ln -s ${outside}/f file; ln -s ${outside}/new dangling`,
        );
        for (const path of ["out/f", "file", "dangling"]) {
          assert.equal(await refusal(environment.readFile(path), `reading ${path}`), "PATH_OUTSIDE");
          assert.equal(await refusal(environment.writeFile(path, "x"), `writing ${path}`), "PATH_OUTSIDE");
        }
        assert.equal(await refusal(environment.writeFile("out/made", "x"), "writing out/made"), "PATH_OUTSIDE");
        assert.equal(await refusal(environment.list("out"), "listing out"), "PATH_OUTSIDE");
        assert.equal(await shell(environment, `cat ${outside}/f; ls ${outside}`), "secret\nf\n");
      } finally {
        await environment.exec(`rm -rf ${outside}`);
      }
      return undefined;
    },
  },
  {
    name: "a link inside the environment is followed for reading and writing",
    async check(environment) {
      await shell(environment, "mkdir d; echo 1 > d/f; ln -s d alias; ln -s d/f direct");
      await environment.writeFile("alias/f", "2");
      await shell(environment, "ln -s ../d/new d/not-yet");
      await environment.writeFile("d/not-yet", "3");
      assert.equal(await shell(environment, "cat d/new; test -L d/not-yet && echo link"), "3link\n");
      assert.equal(Buffer.from(await environment.readFile("direct")).toString(), "2");
      assert.equal(await shell(environment, "cat d/f; test -L alias && test -L direct && echo links"), "2links\n");
      return undefined;
    },
  },
  {
    name: "path leads the host to the file, or is null",
    async check(environment) {
      await shell(environment, "mkdir 'ü'; echo 1 > 'ü/f'");
      const path = environment.path("ü/f");
      if (path !== null) assert.equal(await readFile(path, "utf8"), "1\n");
      return undefined;
    },
  },
];
