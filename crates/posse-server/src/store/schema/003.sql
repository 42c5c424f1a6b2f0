-- Messages on their way to an agent. A row without `done` after a crash is a message that may or may not have arrived: it
-- is reported, never sent again.
CREATE TABLE inputs (
    terminal TEXT    NOT NULL,
    writer   INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    done     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (terminal, writer, sequence)
) STRICT, WITHOUT ROWID;
