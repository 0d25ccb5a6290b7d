-- Version 1. Described table by table in docs/src/reference/notebook.md.
CREATE TABLE run (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid       TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL UNIQUE,
    batch      TEXT NOT NULL,
    experiment TEXT NOT NULL,
    parameters TEXT NOT NULL,
    target     TEXT NOT NULL,
    setting    TEXT NOT NULL,
    started    TEXT NOT NULL,
    pagelab    TEXT NOT NULL
) STRICT;

CREATE TABLE repetition (
    id      INTEGER PRIMARY KEY,
    run     INTEGER NOT NULL REFERENCES run (id),
    number  INTEGER NOT NULL,
    started TEXT NOT NULL,
    outcome TEXT CHECK (outcome IN ('done', 'interrupted', 'failed', 'torn')),
    reason  TEXT,
    writer  TEXT,
    UNIQUE (run, number)
) STRICT;

CREATE TABLE environment (
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    name       TEXT NOT NULL,
    value      TEXT NOT NULL,
    PRIMARY KEY (repetition, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE metric (
    id         INTEGER PRIMARY KEY,
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    name       TEXT NOT NULL,
    unit       TEXT NOT NULL,
    better     TEXT NOT NULL,
    value      REAL
) STRICT;
CREATE INDEX metric_of_repetition ON metric (repetition);

CREATE TABLE histogram (
    id         INTEGER PRIMARY KEY,
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    name       TEXT NOT NULL,
    unit       TEXT NOT NULL,
    min        INTEGER NOT NULL,
    max        INTEGER NOT NULL,
    sum        INTEGER NOT NULL
) STRICT;
CREATE INDEX histogram_of_repetition ON histogram (repetition);

CREATE TABLE bucket (
    histogram INTEGER NOT NULL REFERENCES histogram (id),
    value     INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (histogram, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE series (
    id         INTEGER PRIMARY KEY,
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    name       TEXT NOT NULL
) STRICT;
CREATE INDEX series_of_repetition ON series (repetition);

CREATE TABLE series_column (
    id     INTEGER PRIMARY KEY,
    series INTEGER NOT NULL REFERENCES series (id),
    name   TEXT NOT NULL,
    unit   TEXT,
    type   TEXT NOT NULL CHECK (type IN ('number', 'text'))
) STRICT;
CREATE INDEX series_column_of_series ON series_column (series);

CREATE TABLE cell (
    series_column INTEGER NOT NULL REFERENCES series_column (id),
    row           INTEGER NOT NULL,
    number        REAL,
    text          TEXT,
    PRIMARY KEY (series_column, row)
) STRICT, WITHOUT ROWID;

CREATE TABLE page_snapshot (
    id         INTEGER PRIMARY KEY,
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    reference  INTEGER NOT NULL,
    pages      INTEGER NOT NULL,
    present    BLOB NOT NULL,
    swapped    BLOB NOT NULL,
    count      BLOB NOT NULL,
    last       BLOB NOT NULL
) STRICT;
CREATE INDEX page_snapshot_of_repetition ON page_snapshot (repetition);

CREATE TABLE counter (
    id         INTEGER PRIMARY KEY,
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    source     TEXT NOT NULL,
    name       TEXT NOT NULL,
    before     INTEGER NOT NULL,
    after      INTEGER NOT NULL
) STRICT;
CREATE INDEX counter_of_repetition ON counter (repetition);

CREATE TABLE note (
    id         INTEGER PRIMARY KEY,
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    level      TEXT NOT NULL,
    text       TEXT NOT NULL
) STRICT;
CREATE INDEX note_of_repetition ON note (repetition);

CREATE TABLE log (
    id         INTEGER PRIMARY KEY,
    repetition INTEGER NOT NULL REFERENCES repetition (id),
    name       TEXT NOT NULL,
    text       TEXT NOT NULL
) STRICT;
CREATE INDEX log_of_repetition ON log (repetition);
