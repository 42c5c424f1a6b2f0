-- Runs of the loop, as they are now. `view` is what everyone may see of one, as JSON.
CREATE TABLE runs (
    id         TEXT PRIMARY KEY,
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
