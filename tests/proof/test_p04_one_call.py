"""P4: restore, answers and a new message are one transaction; the same call again finishes what a crash broke off."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.proof import broken_calls
from tests.proof.broken_calls import Break
from tests.proof.ledger import Tried
from tests.proof.repeats import wrong_of
from tests.proof.scenes import BUILDS, ONE_CALL


@pytest.mark.promise("P4", "crashes at a command or a call of the store")
@pytest.mark.parametrize(
    ("build", "where", "stream", "store"),
    [("graph", "by id", False, "sqlite"), ("graph", "latest", True, "memory"), ("function", "latest", True, "memory")],
)
def test_the_same_call_again_finishes_what_a_crash_broke_off(
    tmp_path: Path, tried: Tried, build: str, where: str, store: str, *, stream: bool
) -> None:
    """Up to the claim nothing has run and nothing is changed in the store; after it nothing is lost or done twice."""
    scene = replace(ONE_CALL[where], build=BUILDS[build], stream=stream, store=store)
    wrong, crashes = asyncio.run(wrong_of(scene, tmp_path, every=9 if build == "graph" else 29, first=1))
    tried(crashes)
    assert wrong == []


@pytest.mark.proof
@pytest.mark.promise("P4", "crashes at a command or a call of the store")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("where", ONE_CALL)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("store", ["memory", "sqlite", "files"])
def test_the_same_call_again_finishes_what_a_crash_broke_off_anywhere(
    tmp_path: Path, tried: Tried, build: str, where: str, store: str, key: str | None, *, stream: bool
) -> None:
    """The long form: every point, with and without a key, as a call and as a stream, over all stores."""
    scene = replace(ONE_CALL[where], build=BUILDS[build], stream=stream, key=key, store=store)
    wrong, crashes = asyncio.run(wrong_of(scene, tmp_path, every=1 if store == "memory" else 3, first=int(stream)))
    tried(crashes)
    assert wrong == []


BREAKS: dict[str, Break] = {
    "handlers start before the claim": broken_calls.starts_first,
    "something is stored before the claim": broken_calls.stores_first,
    "the same call again is not known": broken_calls.knows_nothing,
}


#: The others are noticed in the long form.
QUICK = "something is stored before the claim"


@pytest.mark.notices("P4")
@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.proof) for name in BREAKS]
)
def test_a_broken_claim_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is done before the claim is seen, and so is a call that is not known when it comes again."""
    BREAKS[name](monkeypatch)
    wrong, _ = asyncio.run(wrong_of(ONE_CALL["by id"], tmp_path, every=1 if name != QUICK else 3))
    assert wrong != []


@pytest.mark.notices("P4")
def test_answers_and_message_in_two_commits_are_noticed(tmp_path: Path) -> None:
    """A call that answers first and brings its message afterwards is found out."""
    scene = replace(ONE_CALL["by id"], caller=broken_calls.in_two)
    wrong, _ = asyncio.run(wrong_of(scene, tmp_path, every=4))
    assert any("again: AlreadyAnsweredError" in text for text in wrong)
