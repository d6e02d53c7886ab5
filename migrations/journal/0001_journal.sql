-- The journal: one row per accepted delivery, never changed, never removed.
CREATE TABLE meta (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  epoch      TEXT    NOT NULL,             -- a uuid made with the file
  paused     INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  created_at INTEGER NOT NULL              -- microseconds UTC
) STRICT;

CREATE TABLE delivery (
  seq                    INTEGER PRIMARY KEY AUTOINCREMENT, -- discovery only; the order is (received_at, id)
  id                     TEXT    NOT NULL UNIQUE,
  received_at            INTEGER NOT NULL,                  -- microseconds UTC, strictly increasing
  clock_at               INTEGER NOT NULL,                  -- microseconds UTC, the clock as read
  profile                TEXT    NOT NULL,
  automation_id          TEXT,
  automation_name        TEXT,
  automation_aggregation TEXT,
  automation_period      TEXT,
  session_id             TEXT,
  content_type           TEXT,
  source                 TEXT    NOT NULL CHECK (source IN ('http', 'import')),
  adopted                INTEGER NOT NULL CHECK (adopted IN (0, 1)),
  body_bytes             INTEGER NOT NULL,
  body_sha256            TEXT    NOT NULL,
  archive_path           TEXT    NOT NULL                   -- relative to the archive folder
) STRICT;

CREATE UNIQUE INDEX delivery_position ON delivery (received_at, id);
CREATE INDEX delivery_automation ON delivery (profile, automation_id, received_at, id);

CREATE TRIGGER delivery_is_never_updated BEFORE UPDATE ON delivery
BEGIN SELECT RAISE(ABORT, 'journal rows are never updated'); END;
CREATE TRIGGER delivery_is_never_deleted BEFORE DELETE ON delivery
BEGIN SELECT RAISE(ABORT, 'journal rows are never deleted'); END;
-- INSERT OR REPLACE deletes without asking the trigger above.
CREATE TRIGGER delivery_is_never_replaced BEFORE INSERT ON delivery
WHEN EXISTS (SELECT 1 FROM delivery WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM delivery WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'journal rows are never replaced'); END;

-- A person sets a wrong delivery aside (test data, somebody else's phone).
CREATE TABLE exclusion (
  delivery_id TEXT    PRIMARY KEY,
  reason      TEXT    NOT NULL,
  created_at  INTEGER NOT NULL              -- microseconds UTC
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
  hash         TEXT    PRIMARY KEY,         -- hex sha256 of the token; the token itself is kept nowhere
  profile      TEXT    NOT NULL,
  scope        TEXT    NOT NULL CHECK (scope IN ('ingest', 'read', 'admin')),
  label        TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,            -- microseconds UTC
  last_used_at INTEGER,
  revoked_at   INTEGER
) STRICT, WITHOUT ROWID;
