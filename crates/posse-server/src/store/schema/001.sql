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
    id            TEXT PRIMARY KEY,
    name          TEXT    NOT NULL,
    session       TEXT    NOT NULL,
    provider      TEXT    NOT NULL,
    agent_profile TEXT,
    directory     TEXT    NOT NULL,
    command       TEXT    NOT NULL,      -- JSON array
    rows          INTEGER NOT NULL,
    cols          INTEGER NOT NULL,
    created       INTEGER NOT NULL,
    last_active   INTEGER NOT NULL,
    pid           INTEGER,
    exit          TEXT,                  -- JSON, null while it runs
    status        TEXT    NOT NULL       -- JSON
) STRICT;
