// CRIU's messages as bytes, and its log in words.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { criuRequest, criuResponse, descriptor } from "../../src/environment/sandbox/processes/messages.ts";
import { decode, encode } from "../../src/environment/sandbox/processes/protobuf.ts";
import { losses, refusals } from "../../src/environment/sandbox/processes/refusals.ts";

test("a request has the bytes of rpc.proto", () => {
  const bytes = encode(criuRequest, { type: 1, opts: { images_dir_fd: -1, leave_running: true, log_file: "a" } });
  // type = 1; opts of 16 bytes: 1: -1 as a ten-byte number, 3: true, 10: "a"
  expect(Buffer.from(bytes).toString("hex")).toBe("08011210" + "08ffffffffffffffffff01" + "1801" + "520161");
  expect(decode(criuRequest, bytes)).toEqual({
    type: 1,
    opts: { images_dir_fd: -1, leave_running: true, log_file: "a" },
  });
});

test("unknown fields are skipped, repeated ones kept, and half a message is none", () => {
  const bytes = Buffer.from("08011001" + "4a0161" + "f23f0161", "hex");
  expect(decode(criuResponse, bytes)).toEqual({ type: 1, success: true, cr_errmsg: "a" });
  expect(decode(descriptor, Buffer.from("0805" + "1003", "hex"))).toEqual({ id: 5 });
  const paths = { opts: { irmap_scan_paths: ["/a", "/b"] } };
  expect(decode(criuRequest, encode(criuRequest, paths))).toEqual(paths);
  expect(() => decode(criuResponse, bytes.subarray(0, -1))).toThrow("ends in the middle");
});

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "agentrewind-log-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
const log = (...lines: string[]): void =>
  writeFileSync(join(folder, "dump.log"), lines.map((line) => `${line}\n`).join(""));
const limits = "Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted";

test.each([
  [
    "Error (criu/files-ext.c:94): Can't dump file 7 of that type [600] (unknown anon_inode:[io_uring])",
    "it uses io_uring",
  ],
  [
    "Error (criu/files-reg.c:1031): Can't dump ghost file /tmp/x y of 300000000 size, increase limit",
    "/tmp/x y is deleted, still open, and too large (300000000 bytes)",
  ],
  [
    "Error (criu/files-reg.c:1790): Can't lookup mount=41 for fd=3 path=/srv/log",
    "its descriptor 3 (/srv/log) comes from a mount outside of the sandbox",
  ],
  [
    "Error (criu/fsnotify.c:284): fsnotify: \tCan't dump that handle",
    "it watches files with inotify or fanotify in a way that cannot be dumped",
  ],
  [
    "Error (criu/sk-inet.c:142): inet: Unsupported proto 262 for socket 7f",
    "it has a socket of a protocol that cannot be dumped (262)",
  ],
  [
    "Error (criu/files-ext.c:94): Can't dump file 4 of that type [0] (unknown anon_inode:[perf_event])",
    "its descriptor 4 ([perf_event]) is of a kind that cannot be dumped",
  ],
  ["Error (criu/new.c:1): something that nobody has seen", "CRIU says: something that nobody has seen"],
])("%s", async (line, reason) => {
  log(
    limits,
    line,
    "Error (criu/cr-dump.c:1545): Dump files (pid: 12) failed with -1",
    "Error (criu/cr-dump.c:1975): Dumping FAILED.",
  );
  expect(await refusals(folder, "dump.log")).toEqual([{ path: "process 12", reason }]);
});

test("of a restore each line names its process", async () => {
  log(
    "    12: Error (criu/sk-inet.c:900): inet: Can't bind inet socket (id 5): Address already in use",
    "Error (criu/cr-restore.c:2200): Restoring FAILED.",
  );
  expect(await refusals(folder, "dump.log")).toEqual([
    { path: "process 12", reason: "an address or port that it had is in use" },
  ]);
});

test("a log without errors, or none at all", async () => {
  log("Warn  (criu/kerndat.c:1): something");
  expect(await refusals(folder, "dump.log")).toEqual([]);
  expect(await losses(join(folder, "dump.log"))).toEqual([]);
  expect(await refusals(folder, "other.log")).toEqual([]);
});
