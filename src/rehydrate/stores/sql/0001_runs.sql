-- Runs, their checkpoints, and the records in them. A "standing" or "body" is a sealed row: checksum and MessagePack.
-- Numbers of runs are local to this file and never leave it.

-- A run, where its head is, and when the first of its timers is up where it rests and waits for one.
CREATE TABLE rehydrate_run (
    no INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    workflow TEXT NOT NULL,
    status TEXT NOT NULL,
    seq INTEGER NOT NULL,
    due REAL,
    standing BLOB NOT NULL
);

CREATE INDEX rehydrate_run_by_workflow ON rehydrate_run (workflow, run_id);

CREATE INDEX rehydrate_run_by_status ON rehydrate_run (status, run_id);

CREATE INDEX rehydrate_run_by_due ON rehydrate_run (due) WHERE due IS NOT NULL;

-- A checkpoint, and the numbers of the records that its commit wrote, which are in its body as well. Rows are added at the
-- end, whatever run they belong to: commits of many runs in one transaction then share pages. A forgotten one stands for
-- records that a later checkpoint still needs, and is nobody's checkpoint any more.
CREATE TABLE rehydrate_checkpoint (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    checkpoint_id TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    forgotten INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run, seq)
);

-- Records are only ever added. A row without a key continues the one before it; a row without data says that the key
-- was removed. The key stands before the data, so that keys are read without reading big data.
CREATE TABLE rehydrate_record (
    id INTEGER PRIMARY KEY,
    key TEXT,
    data BLOB
);

-- The head's records: "parts" rows from "record" on.
CREATE TABLE rehydrate_live (
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    record INTEGER NOT NULL,
    parts INTEGER NOT NULL,
    PRIMARY KEY (run, key)
) WITHOUT ROWID;

CREATE TABLE rehydrate_request (
    request_id TEXT NOT NULL PRIMARY KEY,
    run INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    body BLOB NOT NULL
) WITHOUT ROWID;

CREATE INDEX rehydrate_request_by_run ON rehydrate_request (run);

CREATE INDEX rehydrate_request_open ON rehydrate_request (request_id) WHERE is_open;

CREATE INDEX rehydrate_request_open_by_workflow ON rehydrate_request (workflow, request_id) WHERE is_open;

CREATE INDEX rehydrate_request_open_by_run ON rehydrate_request (run, request_id) WHERE is_open;

CREATE TABLE rehydrate_turn (
    workflow TEXT NOT NULL,
    key TEXT NOT NULL,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (workflow, key)
) WITHOUT ROWID;

CREATE INDEX rehydrate_turn_by_run ON rehydrate_turn (run);
