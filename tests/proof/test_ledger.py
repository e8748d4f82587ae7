"""The ledger: what was tried is counted by promise, and what was found is named."""

from __future__ import annotations

import pytest

from tests.proof.ledger import Ledger, marked


def ledger() -> Ledger:
    """A ledger with one thing tried in two tests, and two broken variants."""
    told = Ledger(prints=True)
    kills: list[tuple[str, object]] = [("promise", ["P2", "random kills"]), ("tried", 30)]
    told.count("a", kills, 1.0, failed=False)
    told.count("b", [*kills, ("tried", 1200)], 20.0, failed=True)
    told.count("c", [("notices", ["P2", ""])], failed=False)
    told.count("d", [("notices", ["P2", ""])], failed=False)
    return told


def test_times_are_added_and_failures_are_named() -> None:
    """One line says what was tried in all tests of a promise, and which of them found something."""
    head, promise, tried, noticed = ledger().lines()
    assert head.split() == ["promise,", "and", "what", "was", "tried", "times", "seconds", "found"]
    assert promise == "P2: an acknowledged checkpoint survives a kill; any other is all or nothing"
    assert tried.split() == ["random", "kills", "1,260", "21", "see", "b"]
    assert noticed.split() == ["deliberately", "broken", "variants", "2", "0", "all", "noticed"]


def test_a_broken_variant_that_is_not_noticed_is_named() -> None:
    """A harness that cannot fail is found out."""
    told = ledger()
    told.count("e", [("notices", ["P2", ""])], failed=True)
    assert told.lines()[-1].split() == ["deliberately", "broken", "variants", "3", "0", "not", "noticed:", "e"]


def test_what_is_for_no_promise_is_counted_beside_them() -> None:
    """The table says where the time went, all of it."""
    told = ledger()
    told.count("e", [], 3.0, failed=False)
    told.count("f", [], 4.0, failed=True)
    assert [line.split() for line in told.lines()[-2:]] == [
        ["beside", "the", "promises"],
        ["wider", "forms", "of", "the", "tests", "2", "7", "see", "f"],
    ]


def test_a_promise_that_is_none_is_refused(request: pytest.FixtureRequest) -> None:
    """A slip in a mark does not make a table of its own."""
    request.node.add_marker(pytest.mark.promise("P13", "nothing"))
    with pytest.raises(ValueError, match="there is no promise 'P13'"):
        marked(request.node)
