"""What a process holds beside its runs, as far as it can be found from a workflow: attributes of executors and their
classes, variables of the functions around handlers, and globals that handlers name.

It can be put back to what it was, as a new process would find it. Must not call the user's code but to copy, compare
and print.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, MutableMapping
from types import CellType, CodeType, FunctionType
from typing import Final, cast

from rehydrate.api.workflow import Workflow
from rehydrate.graph.definition import Definition
from rehydrate.graph.executor import Executor, FunctionExecutor
from rehydrate.graph.function_body import FunctionBody
from rehydrate.graph.step import Step

from .places import Held, Place, can_be_copied, copied, is_scalar
from .scripted import ScriptedExecutor

#: Attributes that the library gives an executor.
_OWN: Final = frozenset(
    {"id", "_made_with", "_frozen", "function", "_own_table", "_table", "_class_table", "_has_hooks"}
)
_STANDARD: Final = sys.stdlib_module_names
#: So deep are attributes of attributes looked at.
_DEPTH: Final = 3


class Outside:
    """Everything found beside the runs of a workflow. `keep` are objects that stand for the outside world."""

    def __init__(self, definition: Definition, keep: Iterable[object] = ()) -> None:
        self._kept = tuple(keep)  # held, so that no other object gets one of their ids
        self._seen: set[int] = {id(value) for value in self._kept}
        self._known: set[tuple[int, str]] = set()
        self.places: list[Place] = []
        for where, executor in _executors(definition, ""):
            self._look_at_executor(f"executor {where!r}", executor)

    def changes(self) -> list[str]:
        """Say what changed since the beginning or the newest reset."""
        return [text for place in self.places if (text := place.change()) is not None]

    def reset(self) -> None:
        """Put everything back to what it was at the beginning."""
        for place in self.places:
            place.reset()

    def _look_at_executor(self, where: str, executor: Executor) -> None:
        if isinstance(executor, ScriptedExecutor):
            return
        attributes = vars(executor)
        for name in sorted(attributes.keys() - _OWN):
            self._look_at(Held(f"{where}: attribute {name!r}", attributes, name), _DEPTH)
        if isinstance(executor, FunctionExecutor | FunctionBody):
            self._look_at_value(where, vars(executor)["function"])
            return
        for cls in type(executor).__mro__:
            if cls is Executor:
                return
            self._look_at_class(where, cls)

    def _look_at_class(self, where: str, cls: type) -> None:
        if not self._is_new(cls):
            return
        for name, value in list(vars(cls).items()):
            if name in _OWN or name.startswith("__"):
                continue
            if isinstance(value, FunctionType):
                self._look_at_function(where, value)
            elif not hasattr(cast("object", type(value)), "__get__"):
                self._look_at(Held(f"{where}: class attribute {cls.__name__}.{name}", cls, name), _DEPTH)

    def _look_at_function(self, where: str, function: FunctionType) -> None:
        if not self._is_new(function):
            return
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            if not _is_empty(cell):
                self._look_at(Held(f"{where}: variable {name!r} around {function.__name__}", cell, name), _DEPTH)
        for default in [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]:
            holder: MutableMapping[str, object] = {"default": default}
            self._look_at(Held(f"{where}: a default of {function.__name__}", holder, "default"), _DEPTH)
        for name in sorted(_names(function.__code__) & function.__globals__.keys()):
            value: object = function.__globals__[name]
            if isinstance(value, FunctionType | type | Step) and value.__module__ != function.__module__:
                continue
            place = f"{where}: global {name!r} of module {function.__module__}"
            self._look_at(Held(place, function.__globals__, name), _DEPTH)

    def _look_at(self, held: Held, depth: int) -> None:
        value = held.read()
        if (id(held.holder), held.key) in self._known:
            return
        self._known.add((id(held.holder), held.key))
        if is_scalar(value):
            self.places.append(Place(held, value, value))
        elif can_be_copied(value):
            fresh = copied(value)
            if self._is_new(value) and fresh is not None:
                self.places.append(Place(held, value, fresh))
        elif not self._look_at_value(held.name.partition(": ")[0], value) and not isinstance(
            value, Executor | Workflow
        ):
            self.places.append(Place(held, value, value))
            if depth and hasattr(value, "__dict__") and _is_users(value) and self._is_new(value):
                attributes = vars(value)
                for name in sorted(attributes):
                    self._look_at(Held(f"{held.name}.{name}", attributes, name), depth - 1)

    def _look_at_value(self, where: str, value: object) -> bool:
        """Look into a function, a step or a class; tell whether it is one."""
        if isinstance(value, Step):
            value = cast("Step[..., object]", value).function
        if isinstance(value, FunctionType):
            self._look_at_function(where, value)
        elif isinstance(value, type):
            cls = cast("type[object]", value)
            if _is_users(cls) and not issubclass(cls, Executor):
                self._look_at_class(where, cls)
        else:
            return False
        return True

    def _is_new(self, value: object) -> bool:
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        return True


def _executors(definition: Definition, path: str) -> Iterator[tuple[str, Executor]]:
    """Yield the executors of a workflow and those below it."""
    for executor_id in definition.order:
        yield f"{path}{executor_id}", definition.executors[executor_id]
        if executor_id in definition.children:
            yield from _executors(definition.children[executor_id], f"{path}{executor_id}/")


def _names(code: CodeType) -> set[str]:
    """Return the names that code, and code inside it, looks up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _is_users(value: object) -> bool:
    """Tell whether a class, or an object's class, is not of Python or of this library."""
    cls = cast("type", value if isinstance(value, type) else type(value))
    top = cls.__module__.partition(".")[0]
    return top != "rehydrate" and top not in _STANDARD
