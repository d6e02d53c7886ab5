-- One generation of the read model, built by one fold version. Disposable: it is only ever created.
CREATE TABLE generation (
  one           INTEGER PRIMARY KEY CHECK (one = 1),
  fold_version  INTEGER NOT NULL,
  journal_epoch TEXT    NOT NULL,
  enrolled_seq  INTEGER NOT NULL,           -- the last journal seq taken in, 0 when none
  enrolled_id   TEXT    NOT NULL,           -- the delivery at that seq: another one there is another journal
  stale         TEXT                        -- why this generation must be rebuilt, NULL when it need not
) STRICT;

-- What became of each delivery: the ledger the runner works from.
CREATE TABLE delivery_result (
  seq           INTEGER PRIMARY KEY,        -- seq of the journal; other tables name the delivery by it
  delivery_id   TEXT    NOT NULL UNIQUE,
  received_at   INTEGER NOT NULL,           -- microseconds UTC
  evidence      INTEGER NOT NULL,           -- received_at of an http delivery, clock_at of an import
  profile       TEXT    NOT NULL,
  automation_id TEXT,
  session_id    TEXT,
  parse_status  TEXT    NOT NULL CHECK (parse_status IN ('pending', 'parsed', 'partial', 'failed', 'excluded')),
  class         TEXT    CHECK (class IN ('folded', 'layer_unknown', 'malformed', 'excluded', 'unreadable', 'too_large', 'deadline', 'broken')),
  declared      TEXT,                       -- the grouping the header names, NULL when none is recognised
  layer         TEXT    CHECK (layer IN ('raw', 'second', 'default', 'minute', 'hour', 'day', 'week', 'month', 'year')),
  layer_origin  TEXT    CHECK (layer_origin IN ('declared', 'bound', 'content', 'inherited', 'midnight', 'unknown')),
  layer_from    TEXT,                       -- the delivery the layer was inherited from
  layer_bound   TEXT,                       -- no layer coarser than this can have made its stamps
  speaks        INTEGER NOT NULL DEFAULT 0, -- 1 when it has a layer of its own or names a grouping: inheritance looks at these
  counters      TEXT,                       -- JSON: points, objects, changed, skipped, partial, incomparable, sections
  reasons       TEXT,                       -- JSON list of plain sentences: what was not understood, and why
  fold_ms       REAL,
  folded_at     INTEGER,                    -- microseconds UTC
  CHECK ((parse_status = 'pending') = (class IS NULL))
) STRICT;

CREATE INDEX delivery_result_pending ON delivery_result (received_at, delivery_id) WHERE parse_status = 'pending';
CREATE INDEX delivery_result_failed ON delivery_result (received_at, delivery_id) WHERE parse_status = 'failed';
CREATE INDEX delivery_result_partial ON delivery_result (received_at, delivery_id) WHERE parse_status = 'partial';
CREATE INDEX delivery_result_position ON delivery_result (received_at, delivery_id);
CREATE INDEX delivery_result_automation_pending ON delivery_result (profile, automation_id, received_at, delivery_id) WHERE parse_status = 'pending';
CREATE INDEX delivery_result_speaks ON delivery_result (profile, automation_id, received_at, delivery_id) WHERE speaks = 1;
CREATE INDEX delivery_result_needs_layer ON delivery_result (received_at, delivery_id) WHERE layer_origin IN ('inherited', 'midnight', 'unknown');
CREATE INDEX delivery_result_session ON delivery_result (profile, session_id) WHERE session_id IS NOT NULL;

CREATE TABLE series (
  id      INTEGER PRIMARY KEY,
  profile TEXT NOT NULL,
  metric  TEXT NOT NULL,
  grain   TEXT NOT NULL CHECK (grain IN ('raw', 'second', 'minute', 'hour', 'day', 'week', 'month', 'year')),
  UNIQUE (profile, metric, grain)
) STRICT;

-- The set of devices behind a point, in one spelling: sorted, no repeats, joined with '|'.
CREATE TABLE source_set (
  id    INTEGER PRIMARY KEY,
  names TEXT NOT NULL UNIQUE
) STRICT;

-- What many points have in common, as delivered.
CREATE TABLE label (
  id         INTEGER PRIMARY KEY,
  unit       TEXT NOT NULL,                 -- '' when none came
  source     TEXT,                          -- NULL when the key was absent
  source_set INTEGER NOT NULL REFERENCES source_set (id),
  offset_min INTEGER,                       -- minutes east of UTC, NULL when the stamp had no offset
  UNIQUE (unit, source, offset_min)
) STRICT;

-- Winners of bucketed metrics.
CREATE TABLE bucket (
  series   INTEGER NOT NULL,
  start    INTEGER NOT NULL,                -- finer than day: seconds since 1970 UTC; day and coarser: days since 1970-01-01 of the local date as written
  value    REAL,                            -- as delivered, in the label's unit; the average of min/avg/max metrics
  min      REAL,
  max      REAL,
  label    INTEGER NOT NULL,
  delivery INTEGER NOT NULL,                -- seq of the winner
  named    INTEGER NOT NULL,                -- seq of the latest delivery that named this bucket, winner or not
  flags    INTEGER NOT NULL,                -- 1 measured, 2 complete
  extra    TEXT,                            -- JSON: everything else the point said
  PRIMARY KEY (series, start)
) STRICT, WITHOUT ROWID;

-- Winners of raw samples: all rows of one (series, instant, source_set) are one candidate.
CREATE TABLE sample (
  series     INTEGER NOT NULL,
  instant    INTEGER NOT NULL,              -- milliseconds since 1970 UTC
  source_set INTEGER NOT NULL,
  n          INTEGER NOT NULL,              -- 0, 1, … within the multiset, in the order of the sorted values
  value      REAL,
  min        REAL,
  max        REAL,
  label      INTEGER NOT NULL,
  delivery   INTEGER NOT NULL,
  extra      TEXT,
  PRIMARY KEY (series, instant, source_set, n)
) STRICT, WITHOUT ROWID;

-- What each delivery held of each series.
CREATE TABLE delivery_series (
  delivery   INTEGER NOT NULL,
  series     INTEGER NOT NULL,
  points     INTEGER NOT NULL,
  first_date INTEGER NOT NULL,              -- days since 1970-01-01, local dates as written
  last_date  INTEGER NOT NULL,
  PRIMARY KEY (delivery, series)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_series_by_series ON delivery_series (series, delivery);

CREATE TABLE automation (
  id            INTEGER PRIMARY KEY,
  profile       TEXT NOT NULL,
  automation_id TEXT NOT NULL,              -- '' for deliveries that name none
  batches       INTEGER NOT NULL DEFAULT 0, -- 1 when two deliveries shared a session id: a missing part cannot be seen
  UNIQUE (profile, automation_id)
) STRICT;

-- The latest delivery of each automation whose window covered a whole local day (or hour) of a series.
CREATE TABLE coverage (
  series     INTEGER NOT NULL,
  unit       TEXT    NOT NULL CHECK (unit IN ('day', 'hour')),
  start      INTEGER NOT NULL,              -- day: days since 1970-01-01 as written; hour: seconds since 1970 UTC
  automation INTEGER NOT NULL,
  delivery   INTEGER NOT NULL,
  PRIMARY KEY (series, unit, start, automation)
) STRICT, WITHOUT ROWID;
