// The catalog's schema. `migrations[n]` brings format n to n + 1; none is ever edited after a release.

/** "ARWD" (F-1). */
export const applicationId = 0x41525744;

export const migrations: readonly string[] = [
  `
  CREATE TABLE workspace (
    id TEXT PRIMARY KEY, path TEXT NOT NULL, dev TEXT NOT NULL, ino TEXT NOT NULL, created_at TEXT NOT NULL
  );
  CREATE TABLE environment (
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL REFERENCES workspace(id), kind TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, head INTEGER REFERENCES checkpoint(id),
    UNIQUE (workspace, kind)
  );
  CREATE TABLE thread (
    id INTEGER PRIMARY KEY, environment TEXT NOT NULL REFERENCES environment(id), name TEXT NOT NULL,
    forked_from INTEGER REFERENCES checkpoint(id), head INTEGER REFERENCES checkpoint(id), next_seq INTEGER NOT NULL DEFAULT 0,
    lessons TEXT NOT NULL DEFAULT '[]', active_at TEXT NOT NULL, UNIQUE (environment, name)
  );
  CREATE TABLE pack (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, environment TEXT NOT NULL, length INTEGER NOT NULL, synced INTEGER NOT NULL,
    boot TEXT NOT NULL
  );
  CREATE TABLE object (
    hash BLOB PRIMARY KEY, pack INTEGER NOT NULL REFERENCES pack(id), offset INTEGER NOT NULL, length INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE snapshot (
    name TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL, fidelity INTEGER NOT NULL, created_at TEXT NOT NULL
  );
  CREATE TABLE image (
    name TEXT PRIMARY KEY, environment TEXT NOT NULL REFERENCES environment(id), bytes INTEGER NOT NULL, about TEXT NOT NULL,
    created_at TEXT NOT NULL
  );
  CREATE TABLE manifest (
    id INTEGER PRIMARY KEY, files TEXT, processes TEXT, files_at TEXT, processes_at TEXT
  );
  CREATE TABLE checkpoint (
    id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id), seq INTEGER NOT NULL,
    parent INTEGER REFERENCES checkpoint(id), timeline INTEGER REFERENCES checkpoint(id), turn INTEGER NOT NULL,
    kind TEXT NOT NULL, state TEXT NOT NULL, reason TEXT, label TEXT, anchor TEXT,
    context TEXT NOT NULL, messages INTEGER NOT NULL, serializer TEXT NOT NULL,
    manifest INTEGER REFERENCES manifest(id), tools TEXT NOT NULL DEFAULT 'unknown', tools_from INTEGER REFERENCES manifest(id),
    changes TEXT, activity TEXT NOT NULL, problems TEXT NOT NULL, timings TEXT NOT NULL, lessons TEXT NOT NULL,
    created_at TEXT NOT NULL, UNIQUE (thread, seq)
  );
  CREATE INDEX checkpoint_anchor ON checkpoint(thread, anchor);
  CREATE TABLE rewind (
    id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id), key TEXT, kind TEXT NOT NULL, requested_by TEXT NOT NULL,
    scope TEXT NOT NULL, head_before INTEGER REFERENCES checkpoint(id), left_at INTEGER NOT NULL REFERENCES checkpoint(id),
    target INTEGER NOT NULL REFERENCES checkpoint(id), epoch INTEGER NOT NULL, delivered INTEGER NOT NULL, undone INTEGER NOT NULL DEFAULT 0,
    result TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE (thread, key)
  );
  CREATE TABLE lesson (
    id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id), rewind INTEGER NOT NULL REFERENCES rewind(id),
    text TEXT NOT NULL, created_at TEXT NOT NULL
  );
  CREATE TABLE intent (
    id INTEGER PRIMARY KEY, environment TEXT NOT NULL REFERENCES environment(id), thread INTEGER REFERENCES thread(id), kind TEXT NOT NULL,
    state TEXT NOT NULL, payload TEXT NOT NULL, created_at TEXT NOT NULL
  );
  CREATE TABLE effect (
    id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id), checkpoint INTEGER REFERENCES checkpoint(id), epoch INTEGER NOT NULL,
    tool TEXT NOT NULL, class TEXT NOT NULL, arguments TEXT NOT NULL, state TEXT NOT NULL, result TEXT, created_at TEXT NOT NULL
  );
  `,
  `
  CREATE TABLE gc (id INTEGER PRIMARY KEY CHECK (id = 1), phase INTEGER NOT NULL);
  INSERT INTO gc VALUES (1, 0);
  ALTER TABLE object ADD COLUMN condemned INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE pack ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE checkpoint ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX checkpoint_parent ON checkpoint(parent);
  CREATE INDEX checkpoint_timeline ON checkpoint(timeline);
  CREATE INDEX checkpoint_manifest ON checkpoint(manifest);
  CREATE INDEX checkpoint_tools_from ON checkpoint(tools_from);
  CREATE INDEX manifest_files ON manifest(files);
  CREATE TABLE rewind_2 (
    id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id), key TEXT, kind TEXT NOT NULL, requested_by TEXT NOT NULL,
    scope TEXT NOT NULL, head_before INTEGER REFERENCES checkpoint(id), left_at INTEGER REFERENCES checkpoint(id), left_seq INTEGER NOT NULL,
    target INTEGER REFERENCES checkpoint(id), target_seq INTEGER NOT NULL, epoch INTEGER NOT NULL, delivered INTEGER NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0, result TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE (thread, key)
  );
  INSERT INTO rewind_2
    SELECT r.id, r.thread, r.key, r.kind, r.requested_by, r.scope, r.head_before, r.left_at, l.seq, r.target, t.seq, r.epoch, r.delivered,
      r.undone, r.result, r.created_at
    FROM rewind r JOIN checkpoint l ON l.id = r.left_at JOIN checkpoint t ON t.id = r.target;
  DROP TABLE rewind;
  ALTER TABLE rewind_2 RENAME TO rewind;
  CREATE INDEX rewind_left_at ON rewind(left_at);
  CREATE INDEX rewind_target ON rewind(target);
  CREATE INDEX rewind_head_before ON rewind(head_before);
  `,
  `
  CREATE TABLE branch (
    id INTEGER PRIMARY KEY AUTOINCREMENT, environment TEXT NOT NULL UNIQUE REFERENCES environment(id),
    thread INTEGER NOT NULL UNIQUE REFERENCES thread(id), source INTEGER NOT NULL REFERENCES thread(id),
    checkpoint INTEGER NOT NULL REFERENCES checkpoint(id), lessons INTEGER NOT NULL, state TEXT NOT NULL, folder TEXT, identity TEXT,
    created_at TEXT NOT NULL
  );
  CREATE INDEX branch_source ON branch(source);
  ALTER TABLE checkpoint ADD COLUMN partial TEXT;
  ALTER TABLE environment ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
  `,
  `
  ALTER TABLE branch ADD COLUMN parents TEXT;
  `,
  `
  CREATE TABLE journal (
    id INTEGER PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread(id) ON DELETE CASCADE,
    checkpoint INTEGER REFERENCES checkpoint(id) ON DELETE CASCADE, key TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (thread, key)
  );
  CREATE INDEX journal_checkpoint ON journal(checkpoint);
  `,
  `
  DROP TABLE effect;
  CREATE TABLE effect (
    id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL REFERENCES thread(id),
    checkpoint INTEGER REFERENCES checkpoint(id) ON DELETE SET NULL, seq INTEGER, epoch INTEGER NOT NULL, call TEXT, tool TEXT NOT NULL,
    class TEXT NOT NULL, description TEXT NOT NULL, arguments TEXT NOT NULL, consumes TEXT NOT NULL, state TEXT NOT NULL, result TEXT, shown TEXT, note TEXT,
    replays INTEGER REFERENCES effect(id), consent TEXT, created_at TEXT NOT NULL, ended_at TEXT, UNIQUE (thread, call)
  );
  CREATE INDEX effect_tool ON effect(thread, tool);
  CREATE INDEX effect_checkpoint ON effect(checkpoint);
  ALTER TABLE checkpoint ADD COLUMN effects TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE thread ADD COLUMN effects_from INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE environment ADD COLUMN holder INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE lesson ADD COLUMN parts TEXT;
  ALTER TABLE lesson ADD COLUMN covers TEXT;
  `,
  `
  CREATE TABLE named_state (
    thread INTEGER NOT NULL REFERENCES thread(id), name TEXT NOT NULL, checkpoint INTEGER NOT NULL REFERENCES checkpoint(id),
    PRIMARY KEY (thread, name)
  ) WITHOUT ROWID;
  CREATE INDEX named_state_checkpoint ON named_state(checkpoint);
  ALTER TABLE thread ADD COLUMN place TEXT;
  `,
  // `checkpoint.tools` may be 'running', which older readers would not take for tools that ran.
  "",
  // `manifest.processes` may name an object, which older versions would collect.
  "",
  `
  ALTER TABLE journal ADD COLUMN behind INTEGER;
  ALTER TABLE journal ADD COLUMN epoch INTEGER;
  ALTER TABLE thread ADD COLUMN acted INTEGER;
  ALTER TABLE thread ADD COLUMN gone TEXT;
  `,
];

export const formatVersion = migrations.length;
