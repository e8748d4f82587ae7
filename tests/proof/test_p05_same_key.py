"""P5: a turn delivered twice with one key runs once, whatever becomes of the first delivery."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.proof import broken_calls, broken_stores
from tests.proof.ledger import Tried
from tests.proof.repeats import wrong_of
from tests.proof.scenes import BUILDS, KEYED


@pytest.mark.promise("P5", "crashes, each with duplicates after it")
@pytest.mark.parametrize("name", ["first call", "answers", "message, by id", "all, latest", "fork"])
def test_duplicates_after_a_crash_run_once(tmp_path: Path, tried: Tried, name: str) -> None:
    """The next delivery goes on with the turn, later ones get what it gave, and none with another request is taken."""
    wrong, crashes = asyncio.run(wrong_of(replace(KEYED[name], key="k"), tmp_path, every=11, first=len(name)))
    tried(crashes)
    assert wrong == []


@pytest.mark.proof
@pytest.mark.promise("P5", "crashes, each with duplicates after it")
@pytest.mark.parametrize("name", KEYED)
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("store", ["memory", "sqlite", "files"])
def test_duplicates_after_a_crash_anywhere_run_once(
    tmp_path: Path, tried: Tried, name: str, build: str, store: str
) -> None:
    """The long form: every point in memory, and some over the other stores."""
    scene = replace(KEYED[name], build=BUILDS[build], key="k", store=store, stream=store == "sqlite")
    wrong, crashes = asyncio.run(wrong_of(scene, tmp_path, every=1 if store == "memory" else 5, first=len(name)))
    tried(crashes)
    assert wrong == []


STORES = {
    "the key is kept with the end only": broken_stores.Keyless,
    "the key is forgotten at the end": broken_stores.Unkeyed,
    "the key is not found": broken_stores.Forgetful,
}
#: The others are noticed in the long form.
QUICK = "the key is kept with the end only"


@pytest.mark.notices("P5")
@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.proof) for name in STORES]
)
def test_a_store_that_loses_keys_is_noticed(tmp_path: Path, name: str) -> None:
    """Each way to lose a key shows after some crash of a first call."""
    scene = replace(KEYED["message, latest"], key="k", mixins=(STORES[name],))
    wrong, _ = asyncio.run(wrong_of(scene, tmp_path, every=1 if name != QUICK else 4))
    assert wrong != []


@pytest.mark.proof
@pytest.mark.notices("P5")
def test_a_key_that_stands_for_any_request_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another request with the key of a turn is taken, or gets another error."""
    broken_calls.compares_nothing(monkeypatch)
    wrong, _ = asyncio.run(wrong_of(replace(KEYED["message, latest"], key="k"), tmp_path))
    assert wrong != []
