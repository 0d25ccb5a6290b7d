-- Version 2: why a repetition failed, as data; under which conditions a run was performed, with their origin.
ALTER TABLE repetition ADD COLUMN failure TEXT;

CREATE TABLE condition (
    run    INTEGER NOT NULL REFERENCES run (id),
    name   TEXT NOT NULL,
    value  TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('asked', 'default', 'target')),
    PRIMARY KEY (run, name)
) STRICT;

ALTER TABLE run ADD COLUMN deterministic INTEGER NOT NULL DEFAULT 0 CHECK (deterministic IN (0, 1));
UPDATE run SET deterministic = 1 WHERE target LIKE 'model:%';
