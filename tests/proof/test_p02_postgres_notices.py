"""The proofs of P2 on PostgreSQL notice stores and servers that lose, halve or repeat what they acknowledge."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from rehydrate.model.checkpoint import Commit, Header
from rehydrate.stores.postgres import batches, writing
from rehydrate.stores.postgres.session import Session
from rehydrate.stores.postgres.waves import request_rows
from rehydrate.testing.store_contract import CommitMaker
from tests.postgres.relays import Proxy
from tests.postgres.server import Place
from tests.processes.nursery import Nursery
from tests.proof import test_p02_postgres as proof
from tests.proof.cuts import own_server
from tests.proof.p02_load import Load, Told, set_up
from tests.proof.talks import lost_or_half, run_again

pytestmark = pytest.mark.notices("P2")
proxy = proof.proxy
Patch = pytest.MonkeyPatch


def takes_a_lost_reply_for_success(patch: Patch) -> None:
    """What was on its way when the line was lost is said to be done."""
    right = batches.write_commits

    def write(session: Session, commits: Sequence[Commit], now: float | None, *, again: bool) -> list[object]:
        return [None] * len(commits) if again else right(session, commits, now, again=again)

    patch.setattr(batches, "write_commits", write)


def takes_a_lost_reply_for_failure(patch: Patch) -> None:
    """What was on its way is made again, and nobody looks whether it was done."""
    patch.setattr(writing, "_is_done", lambda session, commit, standing: False)


def makes_it_again_behind_itself(patch: Patch) -> None:
    """What was on its way is made again behind whatever is there: twice, where it was done."""
    right = batches.write_commits

    def write(session: Session, commits: Sequence[Commit], now: float | None, *, again: bool) -> list[object]:
        return right(session, [behind(session, each) for each in commits] if again else commits, now, again=False)

    patch.setattr(batches, "write_commits", write)


def behind(session: Session, commit: Commit) -> Commit:
    run = writing.find_run(session, commit.header.run_id, None)
    if run is None or run.standing.checkpoint_id == commit.expected:
        return commit
    found = run.standing
    header = msgspec.structs.replace(
        commit.header, seq=found.seq + 1, checkpoint_id=f"{commit.header.checkpoint_id}again"
    )
    lease = msgspec.structs.replace(commit.lease, epoch=found.epoch + (1 if commit.lease.claim else 0))
    return msgspec.structs.replace(commit, header=header, lease=lease, expected=found.checkpoint_id)


def writes_requests_afterwards(patch: Patch) -> None:
    """The rows by which requests are found come in a transaction of their own."""
    right = batches.write_commits
    add = """
    INSERT INTO rehydrate.request (request_id, run, workflow, is_open, body)
    SELECT %s, no, workflow, %s, %s FROM rehydrate.run WHERE run_id = %s
    ON CONFLICT (request_id) DO UPDATE SET is_open = excluded.is_open, body = excluded.body
    """

    def write(session: Session, commits: Sequence[Commit], now: float | None, *, again: bool) -> list[object]:
        bare = [msgspec.structs.replace(commit, requests=()) for commit in commits]
        outcomes = right(session, bare, now, again=again)
        rows = [(row, commit.header.run_id.encode()) for commit in commits for row in request_rows(commit)]
        if rows and not again:
            session.write(*((add, (*row, run_id)) for row, run_id in rows))
        return outcomes

    patch.setattr(batches, "write_commits", write)


LONG = pytest.mark.proof
LOST = [
    pytest.param(takes_a_lost_reply_for_success, "request"),
    pytest.param(takes_a_lost_reply_for_success, "half", marks=LONG),
    pytest.param(takes_a_lost_reply_for_failure, "torn"),
    pytest.param(takes_a_lost_reply_for_failure, "reply", marks=LONG),
    pytest.param(makes_it_again_behind_itself, "reply", marks=LONG),
    pytest.param(writes_requests_afterwards, "reply"),
]


@pytest.mark.parametrize(("breaks", "where"), LOST)
def test_what_is_done_wrong_when_a_line_is_lost_is_noticed(
    postgres: Place, proxy: Proxy, tmp_path: Path, monkeypatch: Patch, breaks: Callable[[Patch], None], where: str
) -> None:
    """A commit that is lost, doubled or half after a cut shows."""
    breaks(monkeypatch)
    told: Told = {"name": "run", "runs": 2, "turns": 4, "seed": 7}
    _, found = proof.cut_every_other_one(proxy, postgres, tmp_path, where, told)
    assert found != []


def test_what_is_lost_or_runs_again_is_noticed() -> None:
    """What is said of the store and of side effects can be wrong in each of these ways."""
    notes: list[list[object]] = [
        ["saved", "run", 0, 1.0, True],
        ["ran", "run", "a key", "take"],
        ["saved", "run", 1, 2.0, False],
    ]
    assert run_again(notes) == []
    assert run_again([*notes, ["ran", "run", "a key", "take"]]) == ["run: take ran again"]
    assert run_again([*notes[:2], ["saved", "run", 1, 2.0, True], ["ran", "run", "a key", "take"]]) == []
    saved = [note[1:] for note in notes if note[0] == "saved"]
    headers = [header(0, 1.0), header(1, 2.0)]
    assert lost_or_half(saved, headers) == []
    assert lost_or_half(saved, headers[:1]) == ["run: checkpoint 1 was acknowledged and is not there"]
    assert lost_or_half(saved, [headers[0], header(1, 3.0)]) == ["run: checkpoint 1 was acknowledged and is not there"]
    assert lost_or_half([], [headers[0], header(2, 3.0)]) == ["checkpoints [0, 2] are there"]


def header(seq: int, created: float) -> Header:
    """Return what a store says of a checkpoint."""
    commit = CommitMaker().claim()
    return msgspec.structs.replace(commit.header, seq=seq, created=created)


@pytest.mark.proof
def test_a_server_that_answers_before_its_log_is_written_is_noticed(nursery: Nursery, tmp_path: Path) -> None:
    """With `synchronous_commit = off` an end of the server takes acknowledged checkpoints with it."""
    seed = secrets.randbits(32)
    told: list[Told] = [{"name": f"p{n}", "runs": 4, "turns": 6, "seed": seed + 100 * n} for n in range(2)]
    with own_server(tmp_path) as server:
        proof.make_schema(Place(server.url, "rehydrate"))
        set_up(server, synchronous_commit="off", wal_writer_delay="10s")
        load = Load(nursery, server, tmp_path, told, seed)
        try:
            load.run(12, "immediate")
            assert any("was acknowledged and is not there" in text for text in load.findings()), f"seed {seed}"
        finally:
            load.close()
