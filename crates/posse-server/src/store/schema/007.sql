-- Runs are of the loop or of a plan. For a plan `state_file` is its file.
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'loop';
CREATE INDEX runs_of_file ON runs (kind, state_file, created);
