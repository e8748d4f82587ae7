-- Committed events, written by a store that keeps them, numbered in their run. They are no records and stand outside of the
-- record sum; a body says whose event it is.
CREATE TABLE rehydrate.event (
    run bigint NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, number)
);

ALTER TABLE rehydrate.event ALTER COLUMN body SET STORAGE EXTERNAL;
