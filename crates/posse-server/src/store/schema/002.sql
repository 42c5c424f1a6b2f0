-- What the daemon must remember to do after a restart, such as where to listen.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
