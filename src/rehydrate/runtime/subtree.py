"""A scope of a run as a run of its own, and back: records with other paths, nothing else.

Views for reading and for `WorkflowExecutor`'s hooks; the records of the whole stay where they are.
"""

from __future__ import annotations

from rehydrate.engine.run import Run, delta_of
from rehydrate.ids import ABOVE_ROOT, slot
from rehydrate.model.records import Key, Record

#: Run-level kinds, which a view of a scope shares with the whole run.
SHARED = ("run", "signature", "turn")
#: Kinds that stand in the parent of the scope they are about.
LISTED = ("scope", "step", "rest")


def subtree(run: Run, path: str) -> Run:
    """Return the records in and below a scope, under paths as if it were the root."""
    found: list[tuple[Key, Record]] = [
        (("", kind, ""), record) for kind in SHARED if (record := run.get("", kind, "")) is not None
    ]
    parent, segment = slot(path)
    for kind in LISTED:
        record = run.get(parent, kind, segment)
        if record is not None:
            found.append(((ABOVE_ROOT, kind, ""), record))
    inside = path + "/"
    for (at, kind, name), record in run.records():
        if at == path:
            found.append((("", kind, name), record))
        elif at.startswith(inside):
            found.append(((at[len(inside) :], kind, name), record))
    return Run(found)


def grafted(run: Run, path: str, below: Run) -> Run:
    """Return a copy of `run` in which the scope at `path` is what `below` says; the inverse of `subtree`."""
    other = without(run, path)
    parent, segment = slot(path)
    delta: dict[Key, Record | None] = {}
    for (at, kind, name), record in below.records():
        if at == ABOVE_ROOT:
            delta[(parent, kind, segment)] = record
        elif at == "" and kind in (*SHARED, "output", "receipt", "receipts"):
            continue
        else:
            delta[(f"{path}/{at}" if at else path, kind, name)] = record
    other.apply(delta_of(delta))
    return other


def without(run: Run, path: str) -> Run:
    """Return a copy of `run` without a scope and all below it."""
    other = run.copy()
    parent, segment = slot(path)
    gone: dict[Key, Record | None] = {(parent, kind, segment): None for kind in LISTED}
    inside = path + "/"
    for key, _ in run.records():
        if key[0] == path or key[0].startswith(inside):
            gone[key] = None
    other.apply(delta_of(gone))
    return other
