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
