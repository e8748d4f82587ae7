"""One seed, one world: processes, a store behind a network, clients, and all that can go wrong between them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.proof.ledger import Tried
from tests.proof.simulated import shrunk, told
from tests.proof.simulated_breakages import BREAKAGES, told_early
from tests.proof.simulated_world import KINDS, World, simulate

_WHAT = "worlds of two or three processes, each from a seed"
#: The worlds of the short form.
_FEW = range(12)
#: So many worlds has the long form, in parts of so many.
_MANY, _PART = 5000, 500
#: By breakage: the first seed that is tried with it. It must be found with that or one of the next nine.
_FIRST = {
    "heads are not compared": 6,
    "neither heads nor epochs are compared": 0,
    "a commit that comes twice is applied twice": 1,
    "a lost reply is taken for success": 4,
    "a lost reply is answered by asking blindly": 2,
    "leases by the clock of the process": 7,
    "leases are not looked at": 4,
    "receipts are forgotten": 4,
    "receipts are not saved": 4,
    "the inbox is forgotten": 25,
    "joins are forgotten": 4,
    "gathered items are forgotten": 5,
    "instances are forgotten": 0,
    "finished invocations are forgotten": 1,
    "calls are forgotten": 3,
    "counters are not saved": 3,
    "state is not saved": 1,
    "keys are remembered too late": 3,
    "keys are not looked for": 2,
    "the same call is not known again": 6,
    "events are told before the commit": 0,
    "conflicts are ignored": 9,
    "a failed claim tells nobody": 18,
}
_TRIES = 10


def check(seeds: range) -> Counter[str]:
    """Let the worlds of some seeds live; returns what was tried in them."""
    tried: Counter[str] = Counter()
    for seed in seeds:
        report = simulate(seed)
        assert not report.found, told(report)
        tried += report.tried
    return tried


@pytest.mark.promise("simulation", _WHAT)
def test_nothing_goes_wrong_in_a_few_worlds(tried: Tried) -> None:
    """Whatever fails, every turn is done once and ends as without failures; every kind of failure is among them."""
    found = check(_FEW)
    assert set(KINDS) <= found.keys()
    tried(len(_FEW))


def test_a_process_may_die_while_a_step_waits_for_its_next_attempt() -> None:
    """What is left of the step is cleaned up in whatever task runs then, and takes nothing of that along."""
    check(range(29, 30))


@pytest.mark.proof
@pytest.mark.promise("simulation", _WHAT)
@pytest.mark.parametrize("first", range(0, _MANY, _PART))
def test_nothing_goes_wrong_in_many_worlds(first: int, tried: Tried) -> None:
    """The same for five thousand worlds."""
    check(range(first, first + _PART))
    tried(_PART)


def test_a_seed_is_one_world() -> None:
    """The same seed gives the same trace again, also in another process, in which hashes are others."""
    seeds = range(10, 13)
    here = [simulate(seed).digest for seed in seeds]
    again = [simulate(seed).digest for seed in seeds]
    command = [sys.executable, "-m", "tests.proof.simulated", str(seeds[0]), "--to", str(seeds[-1]), "--digest"]
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    there = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
    assert here == again == there


@pytest.mark.notices("simulation")
@pytest.mark.parametrize("name", BREAKAGES)
def test_what_is_broken_is_found(name: str) -> None:
    """A deliberately broken store, handle, runtime or engine is found within ten seeds."""
    first = _FIRST[name]
    for seed in range(first, first + _TRIES):
        World(seed, frozenset())  # what its runs come to without failures is found out while nothing is broken
    with BREAKAGES[name]() as world:
        assert any(simulate(seed, world_class=world).found for seed in range(first, first + _TRIES))


def test_a_failure_says_how_to_run_it_alone() -> None:
    """It names seed, last part of the trace and command, and is shrunk to the kinds of failures that it needs."""
    with told_early() as world:
        without = shrunk(1, world)
        report = simulate(1, without, world)
    text = told(report, without)
    assert without == frozenset(KINDS)
    assert text.startswith("seed 1:\nat ")
    assert f"event {report.found[0].split('event ')[1]}" in text
    assert text.endswith(f"run it alone: python -m tests.proof.simulated 1 --without {' '.join(sorted(KINDS))}")
