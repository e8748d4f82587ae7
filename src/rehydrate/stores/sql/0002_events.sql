-- Committed events, written by a store that keeps them, numbered in their run. They are no records and stand outside of the
-- record sum; a body says whose event it is.
CREATE TABLE rehydrate_event (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (run, number)
);
