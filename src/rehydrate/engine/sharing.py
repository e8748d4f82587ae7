"""Scopes that are shared: one for all messages of its node, fed in order whenever it is at rest.

It never ends; what a rule says of an end holds for it at rest with no open request in or below it.
"""

from __future__ import annotations

from .change import Change


def is_over(change: Change, path: str) -> bool:
    """Tell whether a scope at rest has nothing open in or below it."""
    draft = change.draft
    return not draft.count(path, "request") and not draft.count(path, "scope")
