-- Runs, their checkpoints, and the records in them. Ids and keys are UTF-8 in bytea: PostgreSQL's text cannot hold NUL,
-- and bytes are ordered as code points are, whatever the collation of the database. A "body" is a sealed row: checksum
-- and MessagePack. The name "rehydrate" of the schema is replaced where a store has another one.

-- A run, where its head is, and who owns it. "seal" is the checksum of all that its writer said of it; the end of the
-- lease is on the server's clock and not part of it. "due": when the first of its timers is up where it rests. What is
-- live up to commit "live_to" stands in rows of its own. Room is left in a page, so that a new head writes into the page
-- of the old one.
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
    live_to bigint NOT NULL,
    due double precision,
    seal bytea NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX run_by_workflow ON rehydrate.run (workflow, run_id);

CREATE INDEX run_by_status ON rehydrate.run (status, run_id);

CREATE INDEX run_by_due ON rehydrate.run (due) WHERE due IS NOT NULL;

-- A checkpoint, and all that its commit wrote: one row for each commit, as each row and each entry of an index costs
-- more than a small record. "entries" has small records themselves, and lists keys and sizes of the others, which lie
-- one after the other in "data". Commits only add rows; only what forgets changes and deletes them. One without an id
-- and a body stands for records that a later checkpoint still needs, and is nobody's checkpoint any more. An id that is
-- the hex form of 16 bytes stands there as these.
CREATE TABLE rehydrate.checkpoint (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    checkpoint_id bytea UNIQUE,
    body bytea,
    entries bytea NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (run, seq)
);

-- Big data is kept beside the table and not compressed: values may be compressed or encrypted when they come here, and
-- any part of it can be read alone.
ALTER TABLE rehydrate.checkpoint ALTER COLUMN data SET STORAGE EXTERNAL;

-- The records that were live after commit "live_to" of their run, and where in "data" of which commit each of them is;
-- what later commits did is in their "entries". One with a size below 0 is made of parts of earlier ones, which it
-- lists there; a small one stands here itself.
-- The index holds a name made from the key: it could not hold a key of any length.
CREATE TABLE rehydrate.live (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    start integer NOT NULL,
    size integer NOT NULL,
    crc integer NOT NULL,
    key bytea NOT NULL,
    data bytea
);

CREATE UNIQUE INDEX live_by_name ON rehydrate.live (run, substr(sha256(key), 1, 16));

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
