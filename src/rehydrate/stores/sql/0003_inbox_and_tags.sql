-- Names that people gave to checkpoints of a run, which keep these from being forgotten.
CREATE TABLE rehydrate_tag (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

-- A run's inbox. What was taken stays without its body, so that a key that comes again is known.
CREATE TABLE rehydrate_offer (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    is_taken INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, number),
    UNIQUE (run, key)
) WITHOUT ROWID;

CREATE INDEX rehydrate_offer_waiting ON rehydrate_offer (run, number) WHERE NOT is_taken;
