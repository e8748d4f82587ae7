"""A wave: the commits of several runs as one statement, each of which writes nothing where its run is not as expected.

The rules of a commit are `standing`'s; the part `moved` says them in SQL. Within the statement the head's row comes
first, as what all others are joined with: it is locked until the transaction ends, and nothing is seen before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from rehydrate.model.checkpoint import Commit
from rehydrate.stores.rows import seal_row
from rehydrate.stores.standing import numbered_events

from .headers import seal_header
from .layout import Layout, Place, live_row
from .names import id_cell, key_name, turn_name
from .runs import NOW, check_after
from .session import Asked

#: The channel on which watchers listen.
CHANNEL: Final = "rehydrate"

# Arrays are bound as %b, in the binary format: as text each byte of a record would be looked at and escaped.
_GIVEN: Final = """
WITH given AS (
    SELECT * FROM unnest(
        %b::bytea[], %b::bytea[], %b::text[], %b::bytea[], %b::bytea[], %b::bigint[], %b::bigint[], %b::bigint[],
        %b::bytea[], %b::float8[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bigint[],
        %b::float8[]
    ) WITH ORDINALITY AS t (
        run_id, workflow, status, checkpoint_id, expected, seq, epoch, needed, owner, seconds, seal, cell, body,
        entries, live_to, due, ord
    )
)"""
# What others might do to an inbox meanwhile needs another head, so this cannot change between here and the end.
_TAKES: Final = """, takes AS (SELECT * FROM unnest(%b::bigint[], %b::bigint[]) AS t (ord, number))"""
_ALL_WAIT: Final = """
        AND NOT EXISTS (
            SELECT 1 FROM takes AS t
            LEFT JOIN rehydrate.offer AS o ON o.run = run.no AND o.number = t.number AND o.data IS NOT NULL
            WHERE t.ord = g.ord AND o.number IS NULL
        )"""
_TAKES_NONE: Final = " AND NOT EXISTS (SELECT 1 FROM takes AS t WHERE t.ord = given.ord)"
_TOOK: Final = """, took AS (
    UPDATE rehydrate.offer AS o SET data = NULL FROM takes JOIN taken USING (ord)
    WHERE o.run = taken.no AND o.number = takes.number
)"""
_LEASE_END: Final = f"CASE WHEN owner IS NULL THEN 0 ELSE {NOW} + seconds END"
_MOVED: Final = """, moved AS (
    UPDATE rehydrate.run AS run SET
        status = g.status, checkpoint_id = g.checkpoint_id, seq = g.seq, epoch = g.epoch, owner = g.owner,
        lease_end = {lease_end}, live_to = coalesce(g.live_to, run.live_to), due = g.due, seal = g.seal
    FROM given AS g
    WHERE run.run_id = g.run_id AND run.checkpoint_id = g.expected AND run.epoch = g.needed
        AND run.workflow = g.workflow AND run.seq < g.seq{guard}
    RETURNING run.no, g.ord
)""".replace("{lease_end}", _LEASE_END.replace("owner", "g.owner").replace("seconds", "g.seconds"))
_MADE: Final = """, made AS (
    INSERT INTO rehydrate.run
        (run_id, workflow, status, checkpoint_id, seq, epoch, owner, lease_end, live_to, due, seal)
    SELECT
        run_id, workflow, status, checkpoint_id, seq, epoch, owner, {lease_end}, coalesce(live_to, seq - 1), due, seal
    FROM given WHERE expected IS NULL AND needed = 0 AND epoch = 1{guard}
    ON CONFLICT (run_id) DO NOTHING
    RETURNING no, run_id
)""".replace("{lease_end}", _LEASE_END)
# Data is taken apart in the list of columns, from where it goes into the table row by row; in FROM all of it would be
# copied first, which big records notice.
_TAKEN: Final = """, taken AS (
    SELECT no, ord FROM moved UNION ALL SELECT made.no, given.ord FROM made JOIN given USING (run_id)
), headers AS (
    INSERT INTO rehydrate.checkpoint (run, seq, checkpoint_id, body, entries, data)
    SELECT taken.no, given.seq, given.cell, given.body, given.entries, d.data
    FROM (SELECT unnest(%b::bigint[]) AS ord, unnest(%b::bytea[]) AS data) AS d
    JOIN taken USING (ord) JOIN given USING (ord)
)"""
#: Inserts live records of one run.
NEW_LIVE: Final = """
INSERT INTO rehydrate.live (run, seq, start, size, crc, key, data)
SELECT %s, * FROM unnest(%b::bigint[], %b::integer[], %b::integer[], %b::integer[], %b::bytea[], %b::bytea[])
"""
#: Ends what inserts live records: one that is there is written over.
LIVE_AGAIN: Final = """ON CONFLICT (run, substr(sha256(key), 1, 16))
        DO UPDATE SET seq = excluded.seq, start = excluded.start, size = excluded.size, crc = excluded.crc,
            data = excluded.data"""
_LIVE: Final = f""", live AS (
    INSERT INTO rehydrate.live (run, seq, start, size, crc, key, data)
    SELECT taken.no, r.seq, r.start, r.size, r.crc, r.key, r.data
    FROM unnest(
        %b::bigint[], %b::bigint[], %b::integer[], %b::integer[], %b::integer[], %b::bytea[], %b::bytea[]
    ) AS r (ord, seq, start, size, crc, key, data)
    JOIN taken USING (ord)
    {LIVE_AGAIN}
)"""
_GONE: Final = """, gone AS (
    DELETE FROM rehydrate.live AS live
    USING unnest(%b::bigint[], %b::bytea[]) AS r (ord, name) JOIN taken USING (ord)
    WHERE live.run = taken.no AND substr(sha256(live.key), 1, 16) = r.name
)"""
# No `ON CONFLICT ... WHERE`: a row of another run must be an error, and not a row that is silently not written.
_REQUESTS: Final = """, request AS (
    SELECT taken.no, given.workflow, q.request_id, q.is_open, q.body
    FROM unnest(%b::bigint[], %b::bytea[], %b::boolean[], %b::bytea[]) AS q (ord, request_id, is_open, body)
    JOIN taken USING (ord) JOIN given USING (ord)
), asked AS (
    UPDATE rehydrate.request AS known SET is_open = q.is_open, body = q.body FROM request AS q
    WHERE known.request_id = q.request_id AND known.run = q.no
    RETURNING known.request_id
), opened AS (
    INSERT INTO rehydrate.request (request_id, run, workflow, is_open, body)
    SELECT request_id, no, workflow, is_open, body FROM request WHERE request_id NOT IN (SELECT request_id FROM asked)
)"""
_TURNS: Final = """, turn AS (
    SELECT taken.no, q.name, q.number, q.body
    FROM unnest(%b::bigint[], %b::bytea[], %b::bigint[], %b::bytea[]) AS q (ord, name, number, body)
    JOIN taken USING (ord)
), known AS (
    UPDATE rehydrate.turn AS known SET body = q.body FROM turn AS q
    WHERE known.name = q.name AND known.run = q.no AND known.number = q.number
    RETURNING known.name
), begun AS (
    INSERT INTO rehydrate.turn (name, run, number, body)
    SELECT name, no, number, body FROM turn WHERE name NOT IN (SELECT name FROM known)
)"""
_EVENTS: Final = """, events AS (
    INSERT INTO rehydrate.event (run, number, body)
    SELECT taken.no, e.number, e.body
    FROM unnest(%b::bigint[], %b::bigint[], %b::bytea[]) AS e (ord, number, body) JOIN taken USING (ord)
)"""
_END: Final = " SELECT ord FROM taken"
# A watcher reads kept events; where none are kept nobody is woken, as NOTIFY makes commits wait for one another.
_END_AND_NOTIFY: Final = """
SELECT taken.ord, CASE WHEN w.ord IS NOT NULL THEN pg_notify(%s, w.word)::text END
FROM taken LEFT JOIN unnest(%b::bigint[], %b::text[]) AS w (ord, word) USING (ord)
"""
#: Runs are locked in the order of their ids, so that two processes with the same runs do not wait for each other.
_IN_ORDER: Final = """
SELECT 1 FROM rehydrate.run AS run WHERE run.run_id = ANY(%b::bytea[]) ORDER BY run.run_id FOR UPDATE
"""


class Plan(NamedTuple):
    """What a commit writes; and, where what is live is written with it, what became of the keys since that was done."""

    layout: Layout
    live: dict[str, Place | None] | None = None


def wave(
    commits: Sequence[Commit], plans: Sequence[Plan], now: float | None, words: Sequence[str | None]
) -> list[Asked]:
    """Return the statements that write commits of different runs; the last gives the numbers, from 1, of those taken.

    `plans`: what each of them writes. `words`: what watchers of each run are woken by; `None` where nothing happened
    that they could read.
    """
    numbered = list(enumerate(commits, 1))
    takes = [(ord_, number) for ord_, commit in numbered for number in commit.taken]
    parts, values = [_GIVEN], columns(16, map(_run_row, commits, plans))
    if takes:
        parts.append(_TAKES)
        values += columns(2, takes)
    parts += [
        _MOVED.replace("{guard}", _ALL_WAIT if takes else ""),
        _MADE.replace("{guard}", _TAKES_NONE if takes else ""),
    ]
    values += [now, now]

    def add(part: str, width: int, rows: list[tuple[object, ...]]) -> None:
        if rows:
            parts.append(part)
            values.extend(columns(width, rows))

    planned = list(enumerate(plans, 1))
    add(_TAKEN, 2, [(ord_, plan.layout.data) for ord_, plan in planned])
    live = [(ord_, key, place) for ord_, plan in planned if plan.live for key, place in plan.live.items()]
    add(_LIVE, 7, [(ord_, *live_row(place)) for ord_, _, place in live if place is not None])
    add(_GONE, 2, [(ord_, key_name(key)) for ord_, key, place in live if place is None])
    add(_REQUESTS, 4, [(ord_, *row) for ord_, commit in numbered for row in request_rows(commit)])
    add(_TURNS, 4, [(ord_, *row) for ord_, commit in numbered for row in _turn_rows(commit)])
    add(_EVENTS, 3, [(ord_, e.number, e.data) for ord_, commit in numbered for e in numbered_events(commit)])
    if takes:
        parts.append(_TOOK)
    woken = [(ord_, word) for ord_, word in enumerate(words, 1) if word is not None]
    parts.append(_END_AND_NOTIFY if woken else _END)
    if woken:
        values += [CHANNEL, *columns(2, woken)]
    asked = ("".join(parts), values)
    if len(commits) == 1:
        return [asked]
    return [in_order(commits), asked]


def in_order(commits: Sequence[Commit]) -> Asked:
    """Return the statement that locks the runs of commits, before a wave of several or several waves."""
    return _IN_ORDER, ([commit.header.run_id.encode() for commit in commits],)


def checkpoint_body(commit: Commit) -> bytes:
    """Return the row of a commit's checkpoint, sealed."""
    return seal_header(commit.header, commit.expected)


def columns(width: int, rows: Iterable[tuple[object, ...]]) -> list[object]:
    """Return rows as arrays, one for each column."""
    found: list[list[object]] = [[] for _ in range(width)]
    for row in rows:
        for column, value in zip(found, row, strict=True):
            column.append(value)
    return list(found)


def _run_row(commit: Commit, plan: Plan) -> tuple[object, ...]:
    header, lease = commit.header, commit.lease
    return (
        header.run_id.encode(),
        header.workflow.encode(),
        header.status.value,
        header.checkpoint_id.encode(),
        None if commit.expected is None else commit.expected.encode(),
        header.seq,
        lease.epoch,
        lease.epoch - 1 if lease.claim else lease.epoch,
        lease.owner.encode() if lease.seconds > 0 else None,
        lease.seconds,
        check_after(commit),
        id_cell(header.checkpoint_id),
        checkpoint_body(commit),
        plan.layout.sealed,
        None if plan.live is None else header.seq,
        header.due,
    )


def request_rows(commit: Commit) -> list[tuple[object, ...]]:
    """Return a commit's requests: id, whether it is open, and its sealed row."""
    rows = {row.request_id: row for row in commit.requests}
    return [(request_id.encode(), row.state == "open", seal_row(row)) for request_id, row in rows.items()]


def _turn_rows(commit: Commit) -> list[tuple[object, ...]]:
    turn = commit.turn
    return [] if turn is None else [(turn_name(turn.workflow, turn.key), turn.number, seal_row(turn))]
