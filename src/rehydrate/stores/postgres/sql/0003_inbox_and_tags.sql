-- Names that people gave to checkpoints of a run, which keep these from being forgotten.
CREATE TABLE rehydrate.tag (
    run bigint NOT NULL,
    name bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, name)
);

-- A run's inbox; a "name" is made from the key. "data" is what was offered. What was taken stays without it, so that a key
-- that comes again is known; "body" has the digest of it.
CREATE TABLE rehydrate.offer (
    run bigint NOT NULL,
    number bigint NOT NULL,
    name bytea NOT NULL,
    body bytea NOT NULL,
    data bytea,
    PRIMARY KEY (run, number),
    UNIQUE (run, name)
);

ALTER TABLE rehydrate.offer ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE INDEX offer_waiting ON rehydrate.offer (run, number) WHERE data IS NOT NULL;
