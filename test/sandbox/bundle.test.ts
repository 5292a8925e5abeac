// A sandbox leaves a store in one file and comes to life in another: its processes count on, its files are as they were, whatever keeps its layers.
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { importBundle, type Rewind } from "agentrewind";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { recordKind } from "../../src/bundle/format.ts";
import { BundleReader } from "../../src/bundle/reader.ts";
import type { Header } from "../../src/bundle/schema.ts";
import { BundleWriter } from "../../src/bundle/writer.ts";
import { lacking } from "../capabilities.ts";
import { digestInodes } from "../helpers/inode.ts";
import { runSteps } from "../helpers/steps.ts";
import { codeOf, endSession, useRewind } from "../helpers/workspace.ts";
import { needed } from "./held.ts";
import { mountsBelow } from "./place.ts";

const port = 8377;
const server = `
import http.server
n = 0
class Counter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global n
        n += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(n).encode())
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("127.0.0.1", ${port}), Counter).serve_forever()
`;
const listener = `
import os, socket
s = socket.socket(socket.AF_UNIX)
s.bind("sockets/sock")
s.listen(8)
n = 0
while True:
    c, _ = s.accept()
    n += 1
    c.sendall(str(n).encode())
    c.close()
`;
const ask = `python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:${port}").read().decode())'`;
const askSocket = `python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect("sockets/sock"); print(s.recv(9).decode())'`;

/** What a sandbox changes in every way that a layer keeps. */
const change = `
  mkdir -p sub/deep sockets; echo 1 > sub/f; ln sub/f sub/hard; ln -s /etc/passwd link; mkfifo pipe; rm base/gone; rm -r base/away; mkdir base/away; echo new > base/away/only
  truncate -s 3M sparse; printf x | dd of=sparse bs=1 seek=2000000 conv=notrunc 2>/dev/null; printf 1 > $'\\xff\\xfe'; printf 2 > $'line\\nend'; head -c 600000 /dev/urandom > big
  chmod 2750 sub/deep; chown 1234:4321 sub/f; touch -d '2020-01-02 03:04:05.123456789' sub/f sub; echo agent > /etc/agent; rm /etc/debian_version; rm -rf /usr/share/doc; mkdir /usr/share/doc
  echo t > /tmp/t; echo s > /dev/shm/s; mv base/renamed base/moved`;

interface Stage {
  /** Holds everything of it. */
  readonly base: string;
  readonly workspace: string;
  readonly store: string;
  readonly rewind: Rewind;
  readonly bundle: string;
}

const bases: string[] = [];

function makeBase(parent: string): string {
  const base = fs.mkdtempSync(join(fs.realpathSync(parent), "agentrewind-bundle-"));
  bases.push(base);
  return base;
}

const sh = async ({ environment }: Rewind, line: string): Promise<string> => {
  const { exitCode, stdout, stderr } = await environment.exec(line, { timeoutMs: 60_000 });
  if (exitCode !== 0) throw new Error(`${line}: ${exitCode}: ${stdout}${stderr}`);
  return stdout.trim();
};

/** c0 with a server that has answered once, c1 with one that has answered three times and one file more. */
async function makeStage(parent: string): Promise<Stage> {
  const base = makeBase(parent);
  const [workspace, store] = [join(base, "workspace"), join(base, "store")];
  fs.mkdirSync(join(workspace, "base/away"), { recursive: true });
  for (const name of ["gone", "renamed", "away/x", "kept"]) fs.writeFileSync(join(workspace, "base", name), name);
  fs.writeFileSync(join(workspace, "server.py"), server);
  fs.writeFileSync(join(workspace, "listener.py"), listener);
  const rewind = await useRewind({ base, workspace, store }, { environment: "sandbox", sandbox: { network: "own" } });
  await sh(rewind, change);
  await sh(
    rewind,
    `python3 server.py & python3 listener.py & until (: </dev/tcp/127.0.0.1/${port}) 2>/dev/null; do sleep 0.02; done`,
  );
  await sh(rewind, `until test -S sockets/sock; do sleep 0.02; done; STAGE=one; cd sub; umask 027`);
  // What an answer writes is no part of what is compared.
  expect([await sh(rewind, `cd ..; ${ask}; ${askSocket}; cd sub`)]).toEqual(["1\n1"]);
  await rewind.thread("t").checkpoint({ context: { messages: ["m0"] } });
  expect(await sh(rewind, `${ask}; ${ask}; echo 2 > more; STAGE=two; echo two > /etc/agent`)).toBe("2\n3");
  await rewind.thread("t").checkpoint({ context: { messages: ["m0", "m1"] } });
  const bundle = join(base, "t.bundle");
  const made = await rewind.export({ to: bundle });
  expect(made).toMatchObject({ checkpoints: 2, problems: [] });
  return { base, workspace, store, rewind, bundle };
}

/** The workspace and other places as processes inside see them. */
const seen = ({ environment }: Rewind): unknown => {
  const root = environment.path("")?.replace(/\/root\/.*$/, "/root") as string;
  return {
    // CRIU binds a socket anew.
    workspace: digestInodes(environment.path("") as string).filter((line) => !line.startsWith("'sockets' ")),
    etc: fs.readFileSync(join(root, "etc/agent"), "utf8"),
    version: fs.existsSync(join(root, "etc/debian_version")),
    doc: fs.readdirSync(join(root, "usr/share/doc")),
    tmp: fs.readFileSync(join(root, "tmp/t"), "utf8"),
    shm: fs.readFileSync(join(root, "dev/shm/s"), "utf8"),
  };
};

const state = `pwd; umask; echo $STAGE; jobs | grep -c Running; ${ask}; cd ..; ${askSocket}; cd sub`;

afterAll(() => {
  for (const base of bases.splice(0)) {
    for (const path of mountsBelow(base).reverse()) execFileSync("umount", ["-l", path]);
    execFileSync("rm", ["-rf", base]);
  }
});

const changed = async (bundle: string, header: (header: Header) => Header): Promise<string> => {
  const to = `${bundle}.${Math.random().toString(36).slice(2)}`;
  const [reader, writer] = [new BundleReader(bundle), new BundleWriter(to)];
  for (const { kind, payload } of reader.records()) {
    if (kind === recordKind.header) writer.addJson(kind, header(JSON.parse(payload.toString())));
    else writer.add(kind, payload);
  }
  await writer.finish();
  reader.close();
  return to;
};

/** As it was at c1; then as at c0, and on from there. */
async function expectAlive(rewind: Rewind, stage: Stage, expected: unknown): Promise<void> {
  const inside = join(stage.workspace, "sub");
  expect(seen(rewind)).toEqual(expected);
  expect(await sh(rewind, state)).toBe(`${inside}\n0027\ntwo\n2\n4\n2`);
  expect((await rewind.thread("t").rewind({ to: "c0" })).notRestored).toEqual([]);
  expect(await sh(rewind, state)).toBe(`${inside}\n0027\none\n2\n2\n2`);
  expect(await sh(rewind, "cat /etc/agent; ls more 2>/dev/null || echo none")).toBe("agent\nnone");
  await rewind.thread("t").checkpoint({ label: "on from there" });
  expect((await rewind.thread("t").rewind({ to: "c1" })).notRestored).toEqual([]);
  expect(await sh(rewind, state)).toBe(`${inside}\n0027\ntwo\n2\n4\n2`);
}

const options = { environment: "sandbox" } as const;

describe.skipIf(lacking(...needed, "python")).each([
  ["on a mount of its own", tmpdir()],
  ["below the machine's root", "/var/tmp"],
])("F-66, F-74: a sandbox whose workspace lies %s", (_, parent) => {
  let stage: Stage;
  let expected: unknown;
  beforeAll(async () => {
    stage = await makeStage(parent);
    await stage.rewind.thread("t").rewind({ to: "c1" });
    expected = seen(stage.rewind);
    await endSession(stage.rewind);
  });

  test("counts on in another store and folder, with the same files, and goes back to its older states", async () => {
    const base = makeBase(parent);
    const place = { base, workspace: join(base, "elsewhere/ws"), store: join(base, "store") };
    const made = await importBundle(stage.bundle, { store: place.store, into: place.workspace });
    expect(made).toEqual({
      ...{ workspace: place.workspace, environment: "sandbox", thread: "t", checkpoint: "c1", checkpoints: 2 },
      ...{ processes: "restore", unlike: [], notRestored: [] },
    });
    // Nothing of what the agent did is on the machine itself.
    expect(fs.readdirSync(join(place.workspace, "base")).sort()).toEqual(["away", "gone", "kept", "renamed"]);
    let arrived = await useRewind(place, options);
    await expectAlive(arrived, stage, expected);
    await endSession(arrived);
    arrived = await useRewind(place, options);
    expect(await sh(arrived, ask)).toBe("5");
    // And on to the next, from there.
    const onward = join(base, "onward.bundle");
    await arrived.thread("t").checkpoint();
    await arrived.export({ to: onward });
    await endSession(arrived);
    const next = { base, workspace: join(base, "third"), store: join(base, "store") };
    await importBundle(onward, { store: next.store, into: next.workspace });
    arrived = await useRewind(next, options);
    expect(await sh(arrived, ask)).toBe("6");
    expect((await arrived.thread("t").rewind({ to: "c0" })).notRestored).toEqual([]);
    expect(await sh(arrived, ask)).toBe("2");
  });

  test("the same on a machine without btrfs", async () => {
    const base = makeBase(parent);
    const place = { base, workspace: join(base, "ws"), store: join(base, "store") };
    await withoutBtrfs(base, async () => {
      await importBundle(stage.bundle, { store: place.store, into: place.workspace });
      const arrived = await useRewind(place, options);
      expect(fs.existsSync(join(place.store, "copies"))).toBe(true);
      expect(fs.existsSync(join(place.store, "layers.img"))).toBe(false);
      await expectAlive(arrived, stage, expected);
      const back = join(base, "back.bundle");
      await arrived.export({ to: back });
      await endSession(arrived);
      const made = await importBundle(back, { store: place.store, into: join(base, "again") });
      const again = await useRewind({ ...place, workspace: made.workspace }, options);
      expect(await sh(again, ask)).toBe("4");
    });
  });
});

/** `mkfs.btrfs` cannot be found. */
async function withoutBtrfs(base: string, work: () => Promise<void>): Promise<void> {
  const { tools } = await import("../helpers/tools.ts");
  const { criu } = tools();
  const { XDG_CACHE_HOME, PATH } = process.env;
  const folder = join(base, "cache/agentrewind/tools");
  fs.mkdirSync(folder, { recursive: true });
  const prefix = criu.tool?.prefix ?? "/";
  if (prefix !== "/") fs.symlinkSync(prefix, join(folder, prefix.slice(prefix.lastIndexOf("/") + 1)));
  process.env.XDG_CACHE_HOME = join(base, "cache");
  try {
    await work();
  } finally {
    process.env.XDG_CACHE_HOME = XDG_CACHE_HOME;
    if (XDG_CACHE_HOME === undefined) delete process.env.XDG_CACHE_HOME;
    process.env.PATH = PATH;
  }
}

describe.skipIf(lacking(...needed, "python"))("F-74: a machine that is not like it", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await makeStage(tmpdir());
    await endSession(stage.rewind);
  });

  const target = () => {
    const base = makeBase(tmpdir());
    return { base, workspace: join(base, "ws"), store: join(base, "store") };
  };

  test.each<[string, (header: Header) => Header, RegExp]>([
    [
      "architecture",
      (header) => ({ ...header, machine: { ...header.machine, architecture: "s390x" } }),
      /architecture/,
    ],
    ["processor", (header) => ({ ...header, machine: { ...header.machine, cpuFeatures: ["avx9999"] } }), /avx9999/],
    ["kernel", (header) => withImages(header, { kernel: "99.1.0-x" }), /kernel .* older than 99\.1/],
    ["CRIU", (header) => withImages(header, { criu: "99.1" }), /CRIU .* older than 99\.1/],
    [
      "files that the processes use",
      (header) => withImages(header, { programs: [{ path: "/usr/bin/env", size: 1, digest: "0".repeat(64) }] }),
      /\/usr\/bin\/env/,
    ],
  ])("of another %s: the processes are refused, files and conversation are not", async (_, header, reason) => {
    const place = target();
    const bundle = await changed(stage.bundle, header);
    const refused = importBundle(bundle, { store: place.store, into: place.workspace });
    await expect(refused).rejects.toMatchObject({ code: "UNLIKE_MACHINE", message: expect.stringMatching(reason) });
    expect(fs.readdirSync(place.base)).toEqual([]);
    const made = await importBundle(bundle, { store: place.store, into: place.workspace, processes: "stop" });
    expect(made).toMatchObject({ processes: "stop", unlike: [expect.stringMatching(reason)] });
  });

  test("without CRIU they are started again, or left behind", async () => {
    process.env.AGENTREWIND_CRIU = "off";
    try {
      for (const processes of ["relaunch", "stop"] as const) {
        const place = target();
        const { store, workspace: into } = place;
        expect(await codeOf(importBundle(stage.bundle, { store, into }))).toBe("UNLIKE_MACHINE");
        await importBundle(stage.bundle, { store, into, processes });
        const arrived = await useRewind(place, options);
        expect(await sh(arrived, "cat /etc/agent sub/more 2>/dev/null; echo $STAGE")).toBe("two\n2");
        const alive = `for n in 1 2 3 4 5 6 7 8 9; do (: </dev/tcp/127.0.0.1/${port}) 2>/dev/null && break; sleep 0.1; done; ${ask} 2>/dev/null || echo none`;
        expect(await sh(arrived, alive)).toBe(processes === "relaunch" ? "1" : "none");
        expect(arrived.thread("t").head).toBe("c1");
        await endSession(arrived);
      }
    } finally {
      delete process.env.AGENTREWIND_CRIU;
    }
  });

  test("what is exported is not given up meanwhile", async () => {
    const { rewind, base } = await makeStage(tmpdir());
    const to = join(base, "meanwhile.bundle");
    const work = rewind.export({ to });
    // As gc does behind a prune, where it has waited for the export for too long.
    await rewind.environment.forget?.(() => false);
    expect(await work).toMatchObject({ checkpoints: 2 });
    await rewind.thread("t").rewind({ to: "c0" });
    await endSession(rewind);
    const place = target();
    await importBundle(to, { store: place.store, into: place.workspace });
    const arrived = await useRewind(place, options);
    await arrived.thread("t").rewind({ to: "c0" });
    expect(await sh(arrived, ask)).toBe("2");
  });

  test("F-71: states, overlays and images that lead elsewhere are refused, and nothing is left", async () => {
    type Sandbox = NonNullable<Header["environment"]["sandbox"]>;
    const withSandbox =
      (change: (sandbox: Sandbox) => object) =>
      (header: Header): Header =>
        ({
          ...header,
          environment: {
            ...header.environment,
            sandbox: { ...header.environment.sandbox, ...change(header.environment.sandbox as Sandbox) },
          },
        }) as Header;
    for (const header of [
      withSandbox(() => ({ workspace: "/a/../../b" })),
      withSandbox(() => ({ workspace: "relative" })),
      withSandbox(({ overlays }) => ({ overlays: overlays.map((one) => ({ ...one, name: "../../x" })) })),
      withSandbox(({ overlays }) => ({ overlays: [...overlays, ...overlays] })),
      withSandbox(() => ({ overlays: [] })),
      withSandbox(() => ({ base: "0".repeat(64) })),
      withSandbox(({ states }) => ({ states: states.slice(1) })),
      withSandbox(({ images }) => ({ images: images.slice(1) })),
      withSandbox(({ images }) => ({ images: [...images, { ...images[0], name: "p-x" }] })),
      withSandbox(() => ({ options: { rootfs: 7 } })),
    ]) {
      const place = target();
      const bundle = await changed(stage.bundle, header);
      expect(await codeOf(importBundle(bundle, { store: place.store, into: place.workspace }))).toBe("BUNDLE_DAMAGED");
      expect(fs.readdirSync(place.base)).toEqual([]);
    }
    const [reader, writer] = [new BundleReader(stage.bundle), new BundleWriter(`${stage.bundle}.out`)];
    for (const { kind, payload } of reader.records())
      if (kind === recordKind.imageFile)
        writer.addJson(kind, { ...JSON.parse(payload.toString()), name: "../../../out" });
      else writer.add(kind, payload);
    await writer.finish();
    reader.close();
    const place = target();
    expect(await codeOf(importBundle(`${stage.bundle}.out`, { store: place.store, into: place.workspace }))).toBe(
      "BUNDLE_DAMAGED",
    );
    expect(fs.readdirSync(place.base)).toEqual([]);
  });

  test("F-72: an import that was killed leaves nothing behind that the next does not remove", async () => {
    for (const at of ["import.state-landed:2", "import.images-landed", "import.folder-placed", "import.committed"]) {
      const place = target();
      const steps = [{ op: "import", file: stage.bundle, into: place.workspace }];
      const ran = runSteps({ workspace: "", store: place.store, env: { AGENTREWIND_FAULT: at } }, steps);
      expect([at, ran.signal]).toEqual([at, "SIGKILL"]);
      if (at !== "import.committed") await importBundle(stage.bundle, { store: place.store, into: place.workspace });
      const arrived = await useRewind(place, options);
      expect(await sh(arrived, ask)).toBe("4");
      expect(await arrived.verify()).toEqual([]);
      await arrived.gc();
      expect(fs.readdirSync(join(place.store, "imports"))).toEqual([]);
      expect(fs.readdirSync(join(place.store, "images")).length).toBe(1);
      expect(fs.readdirSync(join(place.store, "sandboxes")).filter((name) => name.endsWith(".json")).length).toBe(1);
      expect(fs.readdirSync(join(place.store, "layers")).length).toBe(1);
      expect(fs.readdirSync(place.base).sort()).toEqual(["store", "ws"]);
      await endSession(arrived);
    }
  });
});

function withImages(header: Header, change: object): Header {
  const { sandbox } = header.environment;
  const images = sandbox?.images.map((one) => ({ ...one, ...change }));
  return { ...header, environment: { ...header.environment, sandbox: { ...sandbox, images } } } as Header;
}
