"""The function of a functional workflow, as the one executor of its definition.

It knows what the function takes and returns, and what else is storable. Running it is the runtime's work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from rehydrate.graph.assembly import assemble
from rehydrate.graph.definition import Definition
from rehydrate.graph.dispatch import HandlerTable
from rehydrate.graph.executor import Executor
from rehydrate.graph.graph_spec import GraphSpec
from rehydrate.graph.handlers import Declaration
from rehydrate.graph.hints import Hint
from rehydrate.graph.signature import signature_text
from rehydrate.graph.specs import specs_of_function
from rehydrate.graph.sub_workflow import WorkflowExecutor


class FunctionBody(Executor):
    """The one executor of a functional workflow. `types` are those of questions, answers and state."""

    is_body: ClassVar[bool] = True

    def __init__(
        self, function: Callable[..., object], declaration: Declaration, id: str, types: tuple[Hint, ...]
    ) -> None:
        super().__init__(id)
        self.function = function
        self.types = types
        self._own_table = HandlerTable(function.__name__, specs_of_function(function, declaration))

    @property
    def handler_table(self) -> HandlerTable:
        """The function as a handler, with what is wrong with it; never raises."""
        return self._own_table

    @property
    def stored_types(self) -> tuple[Hint, ...]:
        """Further types that the function stores."""
        return self.types


def functional_definition(
    spec: GraphSpec, calls: tuple[WorkflowExecutor, ...], hints: tuple[Hint, ...], type_name: Callable[[type], str]
) -> Definition:
    """Return the definition of a functional workflow: its function, and beside it the workflows that it calls.

    No edge leads to those; the function starts them. `hints` are all types of the tree.
    """
    alone = assemble(spec, type_name)
    nodes = {node.id: node for node in sorted(calls, key=lambda node: node.id)}
    executors: Mapping[str, Executor] = MappingProxyType({**alone.executors, **nodes})
    definition = replace(
        alone,
        executors=executors,
        order=(*alone.order, *nodes),
        outgoing=MappingProxyType(dict.fromkeys(executors, ())),
        children=MappingProxyType({name: node.definition for name, node in nodes.items()}),
        nesting=MappingProxyType({name: node.nesting for name, node in nodes.items()}),
        hints=hints,
    )
    return replace(definition, signature=signature_text(definition, type_name))
