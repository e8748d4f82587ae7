-- Runs, their checkpoints, and the records in them. Ids and keys are UTF-8 in bytea: PostgreSQL's text cannot hold NUL, and
-- bytes are ordered as code points are, whatever the collation of the database. A "body" is a sealed row: checksum and
-- MessagePack. The name "rehydrate" of the schema is replaced where a store has another one.

-- A run, where its head is, and who owns it. "seal" is the checksum of all that its writer said of it; the end of the lease
-- is on the server's clock and not part of it. Room is left in a page, so that a new head writes into the page of the old one.
CREATE TABLE rehydrate.run (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id bytea NOT NULL UNIQUE,
    workflow bytea NOT NULL,
    status text NOT NULL,
    checkpoint_id bytea NOT NULL,
    seq bigint NOT NULL,
    epoch bigint NOT NULL,
    owner bytea,
    lease_end double precision NOT NULL,
    seal bytea NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX run_by_workflow ON rehydrate.run (workflow, run_id);

CREATE INDEX run_by_status ON rehydrate.run (status, run_id);

CREATE TABLE rehydrate.checkpoint (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    checkpoint_id bytea NOT NULL UNIQUE,
    body bytea NOT NULL,
    PRIMARY KEY (run, seq)
);

-- Records are only ever added: the "n"th one that a commit wrote. One without data says that the key was removed. They may
-- outlive the checkpoint that wrote them, where a later one needs them.
CREATE TABLE rehydrate.record (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    n integer NOT NULL,
    key bytea NOT NULL,
    data bytea,
    PRIMARY KEY (run, seq, n)
);

-- Big data is kept beside the table and not compressed: values may be compressed or encrypted when they come here.
ALTER TABLE rehydrate.record ALTER COLUMN data SET STORAGE EXTERNAL;

-- The head's records. A "name" is made from the key: an index of PostgreSQL cannot hold a key of any length.
CREATE TABLE rehydrate.live (
    run bigint NOT NULL,
    name bytea NOT NULL,
    seq bigint NOT NULL,
    n integer NOT NULL,
    PRIMARY KEY (run, name)
) WITH (fillfactor = 70);

CREATE TABLE rehydrate.request (
    request_id bytea PRIMARY KEY,
    run bigint NOT NULL,
    workflow bytea NOT NULL,
    is_open boolean NOT NULL,
    body bytea NOT NULL
);

CREATE INDEX request_by_run ON rehydrate.request (run);

CREATE INDEX request_open ON rehydrate.request (request_id) WHERE is_open;

CREATE INDEX request_open_by_workflow ON rehydrate.request (workflow, request_id) WHERE is_open;

CREATE INDEX request_open_by_run ON rehydrate.request (run, request_id) WHERE is_open;

-- A turn that has an idempotency key; a "name" is made from workflow and key.
CREATE TABLE rehydrate.turn (
    name bytea PRIMARY KEY,
    run bigint NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL
);

CREATE INDEX turn_by_run ON rehydrate.turn (run);
