// Stores of older formats (F-1).
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { applicationId, formatVersion, migrations } from "../../src/store/schema.ts";
import { openStore } from "../../src/store/store.ts";

test("F-1: a catalog of format 1 is brought to this format with everything that it holds", () => {
  const path = mkdtempSync(join(tmpdir(), "arw-store-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  mkdirSync(path, { recursive: true });
  const old = new Database(join(path, "catalog.db"));
  old.exec(migrations[0] as string);
  old.pragma("user_version = 1");
  old.pragma(`application_id = ${applicationId}`);
  const checkpoint =
    "'turn', 'durable', NULL, NULL, NULL, 'x', 1, 'json@1', 1, 'ran', 1, NULL, '{}', '[]', '{}', '[]', 'now'";
  old.exec(`
    INSERT INTO workspace VALUES ('w', '/w', '', '', '');
    INSERT INTO environment (id, workspace, kind) VALUES ('e1', 'w', 'directory');
    INSERT INTO thread (id, environment, name, next_seq, active_at) VALUES (1, 'e1', 't', 3, 'now');
    INSERT INTO manifest (id, files) VALUES (1, 'f');
    INSERT INTO checkpoint VALUES (1, 1, 0, NULL, NULL, 1, ${checkpoint}), (2, 1, 1, 1, 1, 2, ${checkpoint}), (3, 1, 2, 2, 2, 2, ${checkpoint});
    UPDATE thread SET head = 1;
    INSERT INTO rewind VALUES (7, 1, 'key', 'rewind', 'agent', 'both', 2, 3, 1, 1, 1, 0, '{}', 'now');
    INSERT INTO lesson VALUES (9, 1, 7, 'learned', 'now');
    INSERT INTO pack VALUES (1, 'a.pack', 'e1', 9, 9, 'boot');
    INSERT INTO object VALUES (x'00', 1, 8, 1);
  `);
  old.close();
  const store = openStore(path);
  onTestFinished(() => store.close());
  expect(store.sql.pragma("user_version", { simple: true })).toBe(formatVersion);
  expect(store.sql.pragma("foreign_key_check")).toEqual([]);
  expect(store.sql.pragma("foreign_keys", { simple: true })).toBe(1);
  const { catalog } = store.open("e1");
  expect(catalog.checkpoints(1).map(({ id, seq, pruned }) => [id, seq, pruned])).toEqual([
    [1, 0, 0],
    [2, 1, 0],
    [3, 2, 0],
  ]);
  expect(catalog.rewinds(1)).toMatchObject([{ id: 7, key: "key", left_at: 3, left_seq: 2, target: 1, target_seq: 0 }]);
  expect(catalog.checkpoints(1).map(({ tools, tools_files: from }) => [tools, from])).toEqual([
    ["ran", "f"],
    ["ran", "f"],
    ["ran", "f"],
  ]);
  const lesson = {
    id: 9,
    text: "learned",
    parts: null,
    covers: null,
    created_at: "now",
    rewind: 7,
    from_seq: 2,
    to_seq: 0,
    target: 1,
    branch: null,
  };
  expect(catalog.lessons(1)).toEqual([lesson]);
  expect(catalog.familyEffects(1)).toEqual([]);
  expect(catalog.checkpoints(1).map(({ effects }) => effects)).toEqual(["[]", "[]", "[]"]);
  expect(store.sql.prepare("SELECT condemned FROM object").pluck().all()).toEqual([0]);
  expect(store.sql.prepare("SELECT sealed FROM pack").pluck().all()).toEqual([0]);
});
