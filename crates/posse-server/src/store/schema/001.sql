-- The log: what happened, in order, for ever (until retention). Everything else can be derived from it.
CREATE TABLE events (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,           -- milliseconds since 1970
    terminal TEXT,
    output_offset INTEGER,               -- how far the terminal's output had been read
    body     TEXT    NOT NULL            -- JSON: kind and data
) STRICT;
CREATE INDEX events_of_terminal ON events (terminal, seq);

-- The terminals as they are now.
CREATE TABLE terminals (
    id     TEXT PRIMARY KEY,
    record TEXT NOT NULL                 -- JSON
) STRICT;

-- What the daemon must remember to do after a restart, such as where to listen.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- Messages on their way to an agent. A row without `done` after a crash is a message that may or may not have arrived: it
-- is reported, never sent again.
CREATE TABLE inputs (
    terminal TEXT    NOT NULL,
    writer   INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    done     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (terminal, writer, sequence)
) STRICT, WITHOUT ROWID;

-- The audit: every answer to a dialog, before its first key and with what became of it. Never changed, never trimmed.
-- `hash` is the SHA-256 of `previous` (as bytes) and `entry` (as it stands here); `previous` is the hash of the entry
-- before. Where the chain ends is also in the file audit.head beside the database. `posse audit verify` checks it all.
CREATE TABLE audit (
    seq      INTEGER PRIMARY KEY,
    entry    TEXT NOT NULL,              -- JSON
    previous TEXT NOT NULL,
    hash     TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit is not changed'); END;
CREATE TRIGGER audit_is_not_shortened BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'nothing is removed from the audit'); END;
-- INSERT OR REPLACE deletes without asking the trigger above.
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE seq = new.seq)
BEGIN SELECT raise(ABORT, 'the audit is not changed'); END;

-- Answers of which it is not written yet what became of them. After a crash these are the ones nobody knows of.
CREATE TABLE audit_open (
    seq INTEGER PRIMARY KEY
) STRICT;

-- Runs as they are now: of the loop, of a plan, of a backlog. `view` is what everyone may see of one, as JSON. For a plan
-- `state_file` is its file, for a backlog its project.
CREATE TABLE runs (
    id         TEXT PRIMARY KEY,
    kind       TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    state_file TEXT    NOT NULL,
    created    INTEGER NOT NULL,
    changed    INTEGER NOT NULL,
    view       TEXT    NOT NULL
) STRICT;

-- What happened in each run. A run is read back from this and from nothing else.
CREATE TABLE journal (
    run   TEXT    NOT NULL,
    seq   INTEGER NOT NULL,              -- counts from 1 in each run
    at    INTEGER NOT NULL,
    entry TEXT    NOT NULL,              -- JSON
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_of_file ON runs (kind, state_file, created);

-- What sessions of plans have used, one row each. Written together with the entry of the journal that tells of it, and never
-- changed: every total and every budget is a sum over these rows. They stay when a run and its journal go.
CREATE TABLE usage (
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    project TEXT,
    plan TEXT,
    item TEXT,
    line TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);
CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_of_plan ON usage (plan);
