"""What goes into and comes out of an executor, as far as it is declared.

`onward` says whether the executor has outgoing edges: what a function returns and what a sub-workflow yields is sent on
where it has, and leaves the workflow where it has none. Must not look at values.
"""

from __future__ import annotations

from collections.abc import Iterable

from rehydrate.graph.definition import Definition
from rehydrate.graph.executor import Executor
from rehydrate.graph.hints import Hint, is_anything, members
from rehydrate.graph.specs import each_spec
from rehydrate.graph.sub_requests import SubWorkflowRequestMessage, SubWorkflowResponseMessage
from rehydrate.graph.sub_workflow import WorkflowExecutor


def takes(executor: Executor) -> tuple[Hint, ...]:
    """Return the types of the messages that an executor has handlers for."""
    if isinstance(executor, WorkflowExecutor):
        definition = executor.definition
        return takes(definition.executors[definition.start])
    return distinct(part for spec in executor.handler_table.specs.handlers for part in members(spec.message))


def sends(executor: Executor, onward: bool) -> tuple[Hint, ...]:
    """Return the types of the messages that an executor says it sends."""
    if isinstance(executor, WorkflowExecutor):
        sent = outputs_of(executor.definition) if _forwards(executor, onward) else ()
        return distinct([*sent, SubWorkflowRequestMessage]) if executor.nesting.intercepts else sent
    specs = executor.handler_table.specs
    sent = [hint for spec in each_spec(specs) for hint in spec.sends]
    returned = [hint for spec in specs.handlers for hint in spec.returns if onward or is_response(hint)]
    return distinct([*sent, *returned])


def yields(executor: Executor, onward: bool) -> tuple[Hint, ...]:
    """Return the types of the outputs that an executor says it yields."""
    if isinstance(executor, WorkflowExecutor):
        return () if _forwards(executor, onward) else outputs_of(executor.definition)
    specs = executor.handler_table.specs
    yielded = [hint for spec in each_spec(specs) for hint in spec.yields]
    returned = [hint for spec in specs.handlers for hint in spec.returns if not onward and not is_response(hint)]
    return distinct([*yielded, *returned])


def is_response(hint: Hint) -> bool:
    """Tell whether a type is that of answers to a sub-workflow, which need no edge."""
    return hint is SubWorkflowResponseMessage


def _forwards(executor: WorkflowExecutor, onward: bool) -> bool:
    """Tell whether what a sub-workflow yields becomes messages."""
    return onward and executor.nesting.forwards != "output"


def outputs_of(definition: Definition) -> tuple[Hint, ...]:
    """Return the types of what a workflow yields."""
    onward = definition.forwards_messages
    # What a function calls yields to the function.
    names = definition.order if definition.body is None else (definition.body,)
    return distinct(hint for name in names for hint in yields(definition.executors[name], name in onward))


def stored_by(executor: Executor) -> tuple[Hint, ...]:
    """Return the types of everything that an executor, with all below it, puts into records."""
    if isinstance(executor, WorkflowExecutor):
        return executor.definition.hints
    specs = executor.handler_table.specs
    found: list[Hint] = [*executor.stored_types]
    for spec in specs.handlers:
        found += [spec.message, *spec.sends, *spec.yields, *spec.returns]
    for answer in specs.response_handlers:
        found += [answer.request, answer.response, *answer.sends, *answer.yields]
    return distinct(hint for hint in found if not is_anything(hint))


def distinct(hints: Iterable[Hint]) -> tuple[Hint, ...]:
    """Return each hint once, in order. Hints need not be hashable."""
    found: list[Hint] = []
    for hint in hints:
        if hint not in found:
            found.append(hint)
    return tuple(found)
