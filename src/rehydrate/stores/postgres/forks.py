"""Forks: what a child must not use of its parent's, and the locks that must be free in it.

A connection that both used would mix their words. Nothing here may talk to a server.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something with threads, locks or connections."""

    def before_fork(self) -> None:
        """Let nobody be in the middle of changing it."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Begin anew: no threads, no locks, no connections of the parent."""
        ...


_all: WeakSet[Forked] = WeakSet()
_caught: list[Forked] = []


def mind_forks(forked: Forked) -> None:
    """Tell something of forks, for as long as it lives."""
    _all.add(forked)


def _before() -> None:
    _caught[:] = list(_all)
    for forked in _caught:
        forked.before_fork()


def _in_parent() -> None:
    for forked in _caught:
        forked.after_fork_in_parent()
    _caught.clear()


def _in_child() -> None:
    for forked in _caught:
        forked.after_fork_in_child()
    _caught.clear()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
