-- What the operator said when an agent was started: how much it may do, and whether the directory is trusted.
ALTER TABLE terminals ADD COLUMN confirmed TEXT;
