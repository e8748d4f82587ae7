"""Which files of a folder are of the workflow, and which of these are the newest of their runs.

Later releases chain the checkpoints of a run: those that none follows are the newest. The first of them
began a chain with each call; there a question that another file has the answer to shows what is not the newest. Betas
keep only the workflow object that wrote them: there the newest is the last before a count of supersteps that falls.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise

from .inert import Refused
from .saved import SavedFile


def of_workflow(files: Mapping[str, SavedFile], name: str) -> dict[str, SavedFile]:
    """Return the files that are the workflow's: those of its name, else all where they are of one graph.

    Raises `Refused` where they are of several.
    """
    named = {file: saved for file, saved in files.items() if saved.graph is None or saved.name == name}
    if any(saved.graph is not None for saved in named.values()):
        return named
    graphs = {saved.graph for saved in files.values() if saved.graph is not None}
    if len(graphs) > 1:
        names = ", ".join(sorted({repr(saved.name) for saved in files.values() if saved.graph is not None}))
        raise Refused(f"the folder holds files of several workflows ({names}), and none is called {name!r}")
    return dict(files)


def newest(files: Mapping[str, SavedFile]) -> dict[str, str]:
    """Return for each file that is not the newest of its run which checkpoint comes behind it."""
    answered: dict[str, set[str]] = {}
    for saved in files.values():
        for request_id in saved.answered:
            answered.setdefault(request_id, set()).add(saved.checkpoint_id)
    _check_order(files)
    behind = {saved.previous: saved.checkpoint_id for saved in files.values() if saved.previous is not None}
    later = {file: behind[saved.checkpoint_id] for file, saved in files.items() if saved.checkpoint_id in behind}
    for file, saved in files.items():
        answering = (other for request_id in saved.asked for other in answered.get(request_id, ()))
        by = {other for other in answering if other != saved.checkpoint_id}
        if by and file not in later:
            later[file] = min(by)
    chains: dict[str, list[tuple[datetime, int, str]]] = {}
    for file, saved in files.items():
        if saved.chain is not None:
            chains.setdefault(saved.chain, []).append((saved.made, saved.iteration, file))
    for chain in chains.values():
        chain.sort()
        for (_, iteration, file), (_, following, next_file) in pairwise(chain):
            if following >= iteration:
                later[file] = files[next_file].checkpoint_id
    return later


def _check_order(files: Mapping[str, SavedFile]) -> None:
    """Raise `Refused` where checkpoints come behind themselves, so that none would be the newest."""
    before = {saved.checkpoint_id: saved.previous for saved in files.values()}
    seen: set[str] = set()
    for first in before:
        way: set[str] = set()
        at: str | None = first
        while at is not None and at not in seen:
            way.add(at)
            seen.add(at)
            at = before.get(at)
        if at in way:
            raise Refused(f"checkpoint {at!r:.80} comes behind itself")
