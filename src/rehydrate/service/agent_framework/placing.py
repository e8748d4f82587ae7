"""Places what a checkpoint of theirs had in a workflow here: questions by path, state, messages, what joins held.

Whatever has no place is refused, unless the caller has named it to be left out; then it is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from rehydrate.errors import EffectError
from rehydrate.graph.definition import Definition
from rehydrate.ids import child_path
from rehydrate.runtime.legacy import ExecutionContext
from rehydrate.runtime.legacy_messages import LegacyMessage, LegacyRequest

from .inert import Refused
from .on_the_way import OnTheWay
from .placement import Placement, Question, where
from .saved import Asked, Execution, Saved
from .trees import Node
from .values import Values


class Placing:
    """Places one checkpoint."""

    def __init__(self, values: Values, leave_out: Collection[str]) -> None:
        self._values = values
        self.placement = Placement(leave_out)
        self._on_the_way = OnTheWay(self.placement, values.value, self._request)

    def root(self, saved: Saved, graph: Definition) -> ExecutionContext:
        """Return what the outermost workflow had, with all below it. Raises `Refused`."""
        context = self._context(saved, graph)
        self._on_the_way.check_answers_arrived()
        return context

    def _context(self, saved: Saved, graph: Definition, path: str = "", executor_id: str = "") -> ExecutionContext:
        """Return what a running workflow had, with all below it."""
        self._on_the_way.note_answers_below(saved, graph, path)
        below = _Below(path)
        for execution in saved.executions:
            self._execution(execution, graph, below)
        requests: list[LegacyRequest] = []
        messages: list[LegacyMessage] = []
        for asked in saved.asked:
            if asked.executor_id in graph.children or asked.inner is not None:
                self._passed_on(asked, graph, below)
                continue
            request = self._request(asked, graph, path)
            answers = self._on_the_way.answers(asked, request)
            messages += answers
            if not answers:
                requests.append(request)
                self._note(asked, path, request, len(requests))
        state, kept = self._state(saved, path), self._executor_states(saved, graph, path)
        messages += self._on_the_way.messages(saved, graph, path)
        return ExecutionContext(executor_id, requests, below.contexts, state, kept, messages)

    def _execution(self, execution: Execution, graph: Definition, below: _Below) -> None:
        name = execution.executor_id
        child = graph.children.get(name)
        if child is None:
            raise Refused(f"{below.path or 'the workflow'} has no sub-workflow {name!r}")
        path = below.next_path(name)
        inside, shared = execution.inside, graph.nesting[name].shared
        if shared or _has_work(inside):
            context = self._context(inside, child, path, name)
            if shared or context.pending_requests or context.execution_contexts or context.messages:
                below.add(context)
                return
        if inside.state or inside.executor_states:
            self.placement.left_out.append(f"the state of {path}, in which nothing was open")

    def _passed_on(self, asked: Asked, graph: Definition, below: _Below) -> None:
        """Find a sub-workflow's question where it was asked; where nothing else is known of it, place it."""
        placed, answered = self.placement.questions, self.placement.answered
        inner = asked.inner or asked.request_id
        if inner in answered:
            if asked.request_id not in answered:
                raise Refused(f"question {asked.request_id!r} passes on {inner!r}, which is answered")
        elif inner in placed:
            placed[asked.request_id] = placed[inner]
        elif asked.inner is not None:
            raise Refused(f"question {asked.request_id!r} passes on {asked.inner!r}, which is not in the file")
        else:
            self._lower(asked, graph, below)

    def _request(self, asked: Asked, graph: Definition, path: str = "") -> LegacyRequest:
        """Return a question of an executor of a graph."""
        what = f"question {asked.request_id!r} of {asked.executor_id!r}"
        if asked.executor_id not in graph.executors:
            raise Refused(
                f"question {asked.request_id!r} is of executor {asked.executor_id!r}, which {path or 'the workflow'}"
                " does not have"
            )
        try:
            data = self._values.value(asked.data)
            response = self._response(asked, data, graph, asked.executor_id)
            graph.executors[asked.executor_id].response_handler_for(data, response)
        except (Refused, EffectError) as error:
            raise Refused(f"{what}: {str(error).rstrip('.')}") from error
        return LegacyRequest(asked.executor_id, data, response)

    def _response(self, asked: Asked, data: object, graph: Definition, executor_id: str) -> object:
        if asked.response is not None:
            return self._values.type_of(asked.response)
        hints = list(_answers_to(graph, executor_id, data))
        if len(hints) != 1:
            raise Refused(
                f"the release did not keep the type of the answer, and {executor_id!r} has {len(hints)} response"
                f" handlers for a {type(data).__name__}"
            )
        return hints[0]

    def _lower(self, asked: Asked, graph: Definition, below: _Below) -> None:
        """Place a question of which only the sub-workflow is known: at the one executor there that takes an answer."""
        data = self._values.value(asked.data)
        response = None if asked.response is None else self._values.type_of(asked.response)
        found = list(_askers(graph, asked.executor_id, data, response))
        if len(found) != 1:
            raise Refused(
                f"question {asked.request_id!r} came from somewhere in sub-workflow {asked.executor_id!r}, where"
                f" {len(found)} executors take an answer to it"
            )
        chain, name, hint = found[0]
        path = below.next_path(chain[0])
        request = LegacyRequest(name, data, hint)
        for inner in chain[1:]:
            path = child_path(path, inner, 1)
        context = ExecutionContext(chain[-1], [request])
        for outer in reversed(chain[:-1]):
            context = ExecutionContext(outer, execution_contexts=[context])
        below.add(context)
        self._note(asked, path, request, 1)

    def _note(self, asked: Asked, path: str, request: LegacyRequest, number: int) -> None:
        name = f"{request.executor_id}#{number}?0"
        if asked.request_id in self.placement.questions:
            raise Refused(f"question {asked.request_id!r} stands twice in the file")
        self.placement.questions[asked.request_id] = Question(path, name)

    def _state(self, saved: Saved, path: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, node in saved.state.items():
            what = f"state key {key!r}{where(path)}"
            for value in self.placement.kept("state", f"state:{key}", what, partial(self._values.value, node)):
                found[key] = value
        return found

    def _executor_states(self, saved: Saved, graph: Definition, path: str) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {}
        for executor_id, state in saved.executor_states.items():
            what = f"the state of executor {executor_id!r}{where(path)}"
            make = partial(self._instance, graph, executor_id, state)
            for kept in self.placement.kept("executors", f"executor:{executor_id}", what, make):
                found[executor_id] = kept
        return found

    def _instance(self, graph: Definition, executor_id: str, state: Mapping[str, Node]) -> dict[str, object]:
        executor = graph.executors.get(executor_id)
        if executor is None or not executor.has_instance_state:
            raise Refused("there is no such executor here that overrides both checkpoint hooks")
        return {key: self._values.value(node) for key, node in state.items()}


class _Below:
    """The executions under one path, numbered as the legacy records number them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.contexts: list[ExecutionContext] = []

    def next_path(self, executor_id: str) -> str:
        """Return the path that the next execution of a sub-workflow gets."""
        number = 1 + sum(context.executor_id == executor_id for context in self.contexts)
        return child_path(self.path, executor_id, number)

    def add(self, context: ExecutionContext) -> None:
        """Take an execution in."""
        self.contexts.append(context)


def _has_work(saved: Saved) -> bool:
    here = bool(saved.asked or saved.messages or saved.joins)
    return here or any(_has_work(inner.inside) for inner in saved.executions)


def _answers_to(graph: Definition, executor_id: str, data: object) -> Iterator[object]:
    """Yield the types of answers to a question that an executor takes."""
    executor = graph.executors[executor_id]
    for spec in executor.response_handlers:
        try:
            chosen = executor.response_handler_for(data, spec.response)
        except EffectError:
            continue
        if chosen is spec:
            yield spec.response


def _askers(
    graph: Definition, child_id: str, data: object, response: object
) -> Iterator[tuple[list[str], str, object]]:
    """Yield the executors below that take an answer to a question: the way down, the id, and the answer's type."""
    child = graph.children[child_id]
    for executor_id in child.order:
        if executor_id in child.children:
            for chain, name, hint in _askers(child, executor_id, data, response):
                yield [child_id, *chain], name, hint
        for hint in _answers_to(child, executor_id, data):
            if response is None or hint == response:
                yield [child_id], executor_id, hint
