// The backend by itself: every call of deepagents' protocol on real files, and no way out of the workspace.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rewindBackend } from "agentrewind/deepagents";
import { isSandboxBackend } from "deepagents";
import { beforeEach, expect, test } from "vitest";
import { connectRemote } from "../../examples/remote-environment/environment.ts";
import { remoteServer } from "../helpers/remote.ts";
import { makePlace, type Place, useRewind } from "../helpers/workspace.ts";

const url = remoteServer();

let place: Place;
let backend: ReturnType<typeof rewindBackend>;

beforeEach(async () => {
  place = makePlace();
  backend = rewindBackend(await useRewind(place));
});

const put = (path: string, data: string | Uint8Array): void => {
  mkdirSync(join(place.workspace, path, ".."), { recursive: true });
  writeFileSync(join(place.workspace, path), data);
};
const get = (path: string): string => readFileSync(join(place.workspace, path), "utf8");

test("deepagents takes it for one that can execute", () => {
  expect(isSandboxBackend(backend)).toBe(true);
});

test("ls: files, folders, and links by what they lead to", async () => {
  put("sub/a.txt", "x");
  put("b.txt", "x");
  symlinkSync("sub", join(place.workspace, "link"));
  expect(await backend.ls("/")).toEqual({
    files: expect.arrayContaining([
      { path: "/sub/", is_dir: true },
      { path: "/b.txt", is_dir: false },
      { path: "/link/", is_dir: true },
    ]),
  });
  expect(await backend.ls("/sub")).toEqual({ files: [{ path: "/sub/a.txt", is_dir: false }] });
  expect((await backend.ls("/missing")).error).toBeDefined();
});

test("read: windows of lines, the empty file, media as bytes, other binary files refused", async () => {
  put("a.txt", "1\n2\n3\n");
  expect(await backend.read("/a.txt", 1, 1)).toMatchObject({
    content: "2",
    totalLines: 3,
    startLine: 2,
    endLine: 2,
    nextOffset: 2,
  });
  const rest = await backend.read("/a.txt", 1);
  expect(rest).toMatchObject({ content: "2\n3", endLine: 3 });
  expect(rest).not.toHaveProperty("nextOffset");
  expect((await backend.read("/a.txt", 9)).error).toContain("3 lines");
  put("empty.png", "");
  expect((await backend.read("/empty.png")).content).toContain("empty contents");
  put("p.png", Buffer.from([0x89, 0x50, 0, 1]));
  expect(await backend.read("/p.png")).toEqual({ content: expect.any(Uint8Array), mimeType: "image/png" });
  put("b.bin", Buffer.from([0, 1, 2]));
  expect((await backend.read("/b.bin")).error).toContain("binary file of 3 bytes");
  expect((await backend.read("/none")).error).toContain("not found");
  expect(await backend.readRaw("/a.txt")).toMatchObject({ data: { content: "1\n2\n3\n", mimeType: "text/plain" } });
});

test("write and edit: one place, several, all of them", async () => {
  expect(await backend.write("/new/a.txt", "one two two")).toMatchObject({ path: "/new/a.txt", filesUpdate: null });
  expect(await backend.edit("/new/a.txt", "one", "1 $&")).toMatchObject({ occurrences: 1 });
  expect((await backend.edit("/new/a.txt", "two", "2")).error).toContain("occurs 2 times");
  expect(await backend.edit("/new/a.txt", "two", "2", true)).toMatchObject({ occurrences: 2 });
  expect(get("new/a.txt")).toBe("1 $& 2 2");
  expect((await backend.edit("/new/a.txt", "three", "3")).error).toContain("does not occur");
  expect((await backend.edit("/none", "a", "b")).error).toContain("not found");
});

test("delete: a file, a folder with what is in it, never the workspace", async () => {
  put("d/e/f", "x");
  put("-rf", "x");
  expect(await backend.delete("/d")).toMatchObject({ path: "/d" });
  expect(await backend.delete("/-rf")).toMatchObject({ path: "/-rf" });
  expect((await backend.delete("/d")).error).toContain("not found");
  expect((await backend.delete("/")).error).toContain("cannot be deleted");
  expect(await backend.ls("/")).toEqual({ files: [] });
});

test("glob and grep: patterns, names with line feeds, caps", async () => {
  put("a.ts", "needle one\nhay\nneedle two\n");
  put("src/b.ts", "no.edle\n");
  put("src/deep/c.md", "needle\n");
  put("src/new\nline.ts", "needle\n");
  put("bin", Buffer.from("needle\0"));
  const paths = async (pattern: string, path?: string) =>
    ((await backend.glob(pattern, path)).files ?? []).map((one) => one.path);
  expect(await paths("*.ts")).toEqual(["/a.ts"]);
  expect(await paths("**/*.ts")).toEqual(["/a.ts", "/src/b.ts", "/src/new\nline.ts"]);
  expect(await paths("/deep/*.md", "/src")).toEqual(["/src/deep/c.md"]);
  expect((await backend.glob("*", "/none")).error).toBeDefined();

  const found = await backend.grep("needle");
  expect(found.matches).toHaveLength(4);
  expect(found.matches).toContainEqual({ path: "/a.ts", line: 3, text: "needle two" });
  expect(found.matches).toContainEqual({ path: "/src/new\nline.ts", line: 1, text: "needle" });
  expect(await backend.grep("needle", "/", "*.md")).toEqual({
    matches: [{ path: "/src/deep/c.md", line: 1, text: "needle" }],
  });
  expect(await backend.grep("needle", "/", null, 2)).toMatchObject({ truncated: true, matches: [{}, {}] });
  expect(await backend.grep("needle", "/a.ts", null, 1)).toMatchObject({ truncated: true, matches: [{ line: 1 }] });
  expect(await backend.grep("n.edle")).toEqual({ matches: [] });
  expect(await backend.grep("needle", "/none")).toEqual({ matches: [] });
});

test("execute: output in its order, exit codes, time", async () => {
  expect(await backend.execute("echo a; echo b >&2; echo c; exit 3")).toEqual({
    output: "a\nb\nc\n",
    exitCode: 3,
    truncated: false,
  });
  const quick = rewindBackend(await useRewind(makePlace()), { timeoutSeconds: 1 });
  expect(await quick.execute("sleep 30")).toMatchObject({
    output: expect.stringContaining("ended after 1 s"),
    exitCode: null,
  });
});

test("upload and download: bytes, and the protocol's codes", async () => {
  const data = new Uint8Array([0, 255, 1]);
  expect(
    await backend.uploadFiles([
      ["/x/y", data],
      ["/../z", data],
    ]),
  ).toEqual([
    { path: "/x/y", error: null },
    { path: "/../z", error: "invalid_path" },
  ]);
  const [got, missing, folder] = await backend.downloadFiles(["/x/y", "/none", "/x"]);
  expect([...(got?.content ?? [])]).toEqual([0, 255, 1]);
  expect(missing).toEqual({ path: "/none", content: null, error: "file_not_found" });
  expect(folder?.error).toBe("is_directory");
});

test("no path leads out of the workspace, by dots or by links", async () => {
  writeFileSync(join(place.base, "secret.txt"), "secret needle");
  mkdirSync(join(place.base, "outside"));
  writeFileSync(join(place.base, "outside", "o.txt"), "secret needle");
  symlinkSync("../secret.txt", join(place.workspace, "link.txt"));
  symlinkSync("../outside", join(place.workspace, "folder"));
  const told: unknown[] = [];
  for (const path of ["/../secret.txt", "/link.txt", "/folder/o.txt", "/folder"]) {
    told.push(
      await backend.read(path),
      await backend.edit(path, "secret", "told"),
      await backend.write(path, "told"),
      await backend.grep("needle", path),
      await backend.glob("*", path),
      await backend.ls(path),
      ...(await backend.downloadFiles([path])),
    );
  }
  told.push(await backend.delete("/folder/o.txt"), await backend.delete("/../secret.txt"));
  for (const one of told) expect(one).toHaveProperty("error", expect.any(String));
  expect(JSON.stringify(told)).not.toContain("secret needle");
  expect((await backend.grep("needle")).matches).toEqual([]);
  expect(readFileSync(join(place.base, "secret.txt"), "utf8")).toBe("secret needle");
  expect(readFileSync(join(place.base, "outside", "o.txt"), "utf8")).toBe("secret needle");
});

test("the workspace's own path is understood where a path is asked for", async () => {
  put("a.txt", "x");
  expect(await backend.read(join(place.workspace, "a.txt"))).toMatchObject({ content: "x" });
});

test("over an environment in another process it is the same, also when a restore has moved it", async () => {
  const environment = await connectRemote(url());
  const rewind = await useRewind(makePlace(), { environment });
  const remote = rewindBackend(rewind);
  await remote.write("/src/a.ts", "needle\n");
  const { id } = await rewind.thread("t").checkpoint({ context: { messages: [] } });
  await remote.execute("rm -r src; echo wrong > b.txt");
  await rewind.thread("t").rewind({ to: id });
  expect(await remote.ls("/")).toEqual({ files: [{ path: "/src/", is_dir: true }] });
  expect(await remote.read("/src/a.ts")).toMatchObject({ content: "needle", totalLines: 1 });
  expect((await remote.read("/b.txt")).error).toContain("not found");
  expect((await remote.glob("**/*.ts")).files).toEqual([{ path: "/src/a.ts", is_dir: false }]);
  expect((await remote.grep("needle")).matches).toHaveLength(1);
  expect((await remote.downloadFiles(["/none", "/../x"])).map((one) => one.error)).toEqual([
    "file_not_found",
    "invalid_path",
  ]);
  expect(await remote.delete("/src")).toMatchObject({ path: "/src" });
});
