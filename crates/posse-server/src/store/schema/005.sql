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
