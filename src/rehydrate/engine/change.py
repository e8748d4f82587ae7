"""A change in the making: the draft, and what the runtime is to be told and to do.

It lives for one transition. It decides nothing; the modules of the engine write into it.
"""

from __future__ import annotations

from rehydrate.graph.definition import Definition
from rehydrate.ids import ABOVE_ROOT, parent_of, scope_of, slot
from rehydrate.model.events import Event

from .commands import Command, Commit, Publish
from .plan import Plan
from .run import Draft, OwnDelta, Run


class Change:
    """One transition's draft, events and commands. `now` does not wait for the commit, `then` does."""

    __slots__ = ("_allowance", "_graphs", "barriers", "draft", "events", "graph", "now", "plans", "then")

    def __init__(self, graph: Definition, run: Run) -> None:
        self.graph = graph
        self.draft = Draft(run)
        self.events: list[Event] = []
        self.now: list[Command] = []
        self.then: list[Command] = []
        #: True once something happened that must be saved at once.
        self.barriers = False
        #: What was read out of the superstep of a scope; forgotten where one is opened or closed.
        self.plans: dict[str, Plan] = {}
        self._graphs: dict[str, Definition] = {}
        self._allowance = 0

    def graph_at(self, path: str) -> Definition:
        """Return the definition that the scope at `path` runs."""
        if not path:
            return self.graph
        found = self._graphs.get(path)
        if found is None:
            parent, segment = slot(path)
            found = self._graphs[path] = self.graph_at(parent).children[scope_of(segment)[0]]
        return found

    def allowance(self) -> int:
        """Return what superstep limits are counted in now."""
        if not self._allowance:
            self._allowance = self.draft.turn().allowance
        return self._allowance

    def finish(self) -> tuple[OwnDelta, tuple[Command, ...]]:
        """Return the delta, and the commands in the order in which they are obeyed."""
        commands = list(self.now)
        if self.barriers:
            commands.append(Commit())
        if self.events:
            commands.append(Publish(tuple(self.events)))
        commands.extend(self.then)
        return self.draft.delta(), tuple(commands)


def enclosing(path: str) -> str | None:
    """Return the parent's path, `None` for the root."""
    parent = parent_of(path)
    return None if parent == ABOVE_ROOT else parent
