-- Where a terminal lives: under our own keeper, or in tmux.
ALTER TABLE terminals ADD COLUMN backend TEXT NOT NULL DEFAULT 'embedded';

-- Input on its way to a terminal whose backend cannot say later whether it arrived. A row without `done` after a
-- crash is input nobody knows the fate of: it is reported, never sent again.
CREATE TABLE inputs (
    terminal TEXT    NOT NULL,
    writer   INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    done     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (terminal, writer, sequence)
) STRICT, WITHOUT ROWID;
