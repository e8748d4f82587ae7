-- Records that are no longer live and whose bytes lie in one that is, as many small parts do that were merged into one:
-- instead of their rows there is one row that says where. The body names the records and is sealed.
CREATE TABLE rehydrate_packed (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX rehydrate_packed_by_run ON rehydrate_packed (run);
