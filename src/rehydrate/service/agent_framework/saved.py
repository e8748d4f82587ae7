"""Checkpoints of theirs in one form, whichever release has written them: questions, state, messages, sub-workflows.

Four layouts are known, by what stands in the file; docs/import-agent-framework.md names the releases. Any other is
refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from .inert import Refused
from .trees import Node, fields_of, has_class, is_empty, items_of, text_of

#: The version that every release so far has written into its files.
VERSION: Final = "1.0"
_EXECUTORS: Final = "_executor_state"
_EDGES: Final = "_edge_state"
_OF_REQUESTS: Final = "_af_pending_request_info"
#: Always there since release 1.19. What joins held is there since 1.18, but only where they held something: with this
#: key in it, a file that says nothing of joins says that they held nothing.
_SINCE_JOINS: Final = "_resolved_workflow_run_kwargs"
#: What the framework keeps among the state of the application.
_KWARGS: Final = ("_workflow_run_kwargs", _SINCE_JOINS, "_routed_workflow_run_kwargs")
_RAW_KWARGS: Final = ("_raw_function_invocation_kwargs", "_raw_client_kwargs")
_CHILD: Final = "sub_workflow_checkpoint"
#: Fields of the base class that questions had in the first betas.
_BASE: Final = frozenset({"request_id", "source_executor_id"})
_EVENTS: Final = ("WorkflowEvent", "RequestInfoEvent")
_ON_THE_WAY: Final = ("SubWorkflowRequestMessage", *_EVENTS)


@dataclass(frozen=True)
class Asked:
    """An open question. `response` is a type as its name or node, `None` where the release did not keep it; `inner` is
    the question of a sub-workflow that this one passes on."""

    request_id: str
    executor_id: str
    data: Node
    response: Node
    inner: str | None = None


@dataclass(frozen=True)
class Message:
    """A message on its way; `answers` is the question that it is the answer to."""

    source: str
    target: str | None
    data: Node
    answers: Asked | None = None


@dataclass(frozen=True)
class Execution:
    """One execution of a sub-workflow; before `sub_workflow_checkpoint` only its questions were kept."""

    executor_id: str
    inside: Saved


@dataclass
class Saved:
    """What one running workflow had. `texts`: values of unknown types were kept as texts."""

    name: str
    texts: bool
    asked: list[Asked] = field(default_factory=list[Asked])
    state: dict[str, Node] = field(default_factory=dict[str, Node])
    executor_states: dict[str, dict[str, Node]] = field(default_factory=dict[str, dict[str, Node]])
    executions: list[Execution] = field(default_factory=list[Execution])
    messages: list[Message] = field(default_factory=list[Message])
    #: Messages that joins hold, by the sources of the join and its target; `None` where the file does not say.
    joins: dict[str, Node] | None = None
    #: Settings of the run that are kept among the state and have no place here.
    kwargs: tuple[str, ...] = ()


@dataclass(frozen=True)
class SavedFile:
    """What choosing among files needs to know of one: the checkpoint, its place among others, and its questions.

    Later releases keep the checkpoint before it (`previous`) and a hash of the graph; early ones which workflow object
    wrote it (`chain`). `asked` are the questions open in its root, `answered` those that an answer is on its way to.
    """

    checkpoint_id: str
    name: str
    previous: str | None
    graph: str | None
    chain: str | None
    made: datetime
    iteration: int
    asked: frozenset[str]
    answered: frozenset[str]


def saved_file(tree: Node) -> tuple[SavedFile, Saved]:
    """Return the checkpoint of a file's tree, and the run in it. Raises `Refused`."""
    fields = fields_of(tree, "the file")
    what = "the file"
    version = fields.get("version", VERSION)
    if "checkpoint_id" not in fields or "messages" not in fields:
        raise Refused("it is no checkpoint of agent-framework-core")
    if version != VERSION:
        raise Refused(f"it has version {version!r}, and version {VERSION!r} is known")
    iteration = fields.get("iteration_count")
    previous, graph = fields.get("previous_checkpoint_id"), fields.get("graph_signature_hash")
    checkpoint_id = text_of(fields, "checkpoint_id", what)
    chain = None if graph is not None else text_of(fields, "workflow_id", what)
    made = _moment(text_of(fields, "timestamp", what))
    run = _saved(fields)
    file = SavedFile(
        checkpoint_id,
        run.name,
        previous if isinstance(previous, str) else None,
        graph if isinstance(graph, str) else None,
        chain,
        made,
        iteration if isinstance(iteration, int) else 0,
        frozenset(asked.request_id for asked in run.asked),
        frozenset(message.answers.request_id for message in run.messages if message.answers is not None),
    )
    return file, run


def _moment(timestamp: str) -> datetime:
    try:
        made = datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise Refused(f"its timestamp {timestamp!r:.80} is none") from error
    return made if made.tzinfo is not None else made.replace(tzinfo=UTC)


def _saved(fields: dict[str, Node]) -> Saved:
    """Return one workflow's part, by its layout."""
    if "executor_states" in fields:
        return _first_betas(fields)
    if "shared_state" in fields:
        return _common(fields, "workflow_id", "shared_state", texts=True)
    if "graph_signature_hash" in fields and "state" in fields:
        return _common(fields, "workflow_name", "state", texts=False)
    raise Refused("its layout is none that is known")


def _common(fields: dict[str, Node], name: str, state_key: str, *, texts: bool) -> Saved:
    state = fields_of(fields[state_key], "the state")
    saved = Saved(text_of(fields, name, "the checkpoint"), texts)
    executors = fields_of(state.pop(_EXECUTORS, ["d"]), "the executors' state")
    edges = state.pop(_EDGES, ["d"] if _SINCE_JOINS in state else None)
    if edges is not None:
        saved.joins = fields_of(edges, "the edges' state")
    _take_state(saved, state)
    for executor_id, node in executors.items():
        _executor(saved, executor_id, fields_of(node, f"the state of {executor_id!r}"))
    events = fields_of(fields.get("pending_request_info_events", ["d"]), "the questions")
    saved.asked = [_asked(event) for event in events.values()]
    saved.messages = _messages(fields)
    return saved


def _take_state(saved: Saved, state: dict[str, Node]) -> None:
    saved.kwargs = tuple(key for key in (*_KWARGS, *_RAW_KWARGS) if not is_empty(state.pop(key, None)))
    saved.state = state


def _executor(saved: Saved, executor_id: str, state: dict[str, Node]) -> None:
    """Sort an executor's state: that of a sub-workflow, in either form, or its own."""
    inside = state.pop(_CHILD, None)
    if inside is not None:
        saved.executions.append(Execution(executor_id, _saved(fields_of(inside, "a sub-workflow"))))
    elif "execution_contexts" in state and "request_to_execution" in state:
        contexts = fields_of(state.pop("execution_contexts"), "the executions")
        del state["request_to_execution"]
        for context in contexts.values():
            saved.executions.append(_execution(executor_id, fields_of(context, "an execution"), texts=saved.texts))
    if state:
        saved.executor_states[executor_id] = state


def _execution(executor_id: str, context: dict[str, Node], *, texts: bool) -> Execution:
    if not is_empty(context.get("collected_responses")):
        raise Refused(f"answers to some questions of {executor_id!r} wait there for others, and no release goes on so")
    events = fields_of(context.get("pending_requests", ["d"]), "the questions of an execution")
    inside = Saved(executor_id, texts, [_asked(event) for event in events.values()])
    return Execution(executor_id, inside)


def _asked(node: Node) -> Asked:
    """Return a question: an event of theirs, as an object or as its dict."""
    event = fields_of(node, "a question")
    event = {key.removeprefix("_"): value for key, value in event.items()}
    request_id = text_of(event, "request_id", "a question")
    executor_id = text_of(event, "source_executor_id", f"question {request_id!r}")
    data = event.get("data")
    return Asked(request_id, executor_id, data, event.get("response_type"), passed_on(data))


def passed_on(data: Node) -> str | None:
    """Return the id of the question that a parent passes on for its sub-workflow; `None` for anything else."""
    for _ in range(4):
        if not has_class(data, *_ON_THE_WAY):
            return None
        fields = {key.removeprefix("_"): value for key, value in fields_of(data, "a question").items()}
        found = fields.get("request_id")
        if isinstance(found, str):
            return found
        data = fields.get("source_event")
    return None


def _messages(fields: dict[str, Node]) -> list[Message]:
    return [
        message_of(node, source)
        for source, each in fields_of(fields.get("messages"), "the messages").items()
        for node in items_of(each, "the messages")
    ]


def message_of(node: Node, source: str) -> Message:
    """Return a message on its way. Raises `Refused`."""
    message = fields_of(node, "a message")
    target = message.get("target_id")
    event = message.get("original_request_info_event")
    if message.get("original_request") is not None:
        raise Refused("it holds an answer on its way, which this release kept without its question's id")
    answered = _asked(event) if event is not None else None
    return Message(source, target if isinstance(target, str) else None, message.get("data"), answered)


def _first_betas(fields: dict[str, Node]) -> Saved:
    """The betas of October 2025: questions are kept by an executor of their own, without the type of the answer."""
    saved = Saved(text_of(fields, "workflow_id", "the checkpoint"), texts=True)
    state = fields_of(fields.get("shared_state", ["d"]), "the state")
    state.pop(_OF_REQUESTS, None)
    _take_state(saved, state)
    for executor_id, node in fields_of(fields["executor_states"], "the executors' state").items():
        own = fields_of(node, f"the state of {executor_id!r}")
        if "request_events" in own:
            saved.asked += _of_gate(own)
        elif "request_info_executor_states" in own or "executions" in own:
            inside = Saved(executor_id, texts=True)
            for gate in fields_of(own.get("request_info_executor_states", ["d"]), "the questions").values():
                inside.asked += _of_gate(fields_of(gate, "the questions"))
            saved.executions.append(Execution(executor_id, inside))
        elif own:
            saved.executor_states[executor_id] = own
    for message in _messages(fields):
        asked = _to_gate(message)
        if asked is None:
            saved.messages.append(message)
        elif all(asked.request_id != known.request_id for known in saved.asked):
            saved.asked.append(asked)
    return saved


def _to_gate(message: Message) -> Asked | None:
    """Return the question that a message is, which had not yet come to the executor that keeps questions."""
    match message.data:
        case ["o", str(name), _, ["l"], ["d", *_] as node]:
            fields = fields_of(node, "a message")
        case _:
            return None
    request_id = fields.get("request_id")
    if not isinstance(request_id, str) or not _BASE.issubset(fields):
        return None
    return Asked(request_id, message.source, _without_base(name, fields), None)


def _without_base(name: str, fields: dict[str, Node]) -> Node:
    kept: list[Node] = [part for key, item in fields.items() if key not in _BASE for part in (key, item)]
    return ["o", name, False, ["l"], ["d", *kept]]


def _of_gate(state: dict[str, Node]) -> list[Asked]:
    found: list[Asked] = []
    for request_id, node in fields_of(state.get("request_events"), "the questions").items():
        event = fields_of(node, "a question")
        given = fields_of(event.get("request_data"), "a question's data")
        executor_id = text_of(event, "source_executor_id", f"question {request_id!r}")
        value = given.get("value")
        data: Node = value
        kind = given.get("kind")
        if isinstance(kind, str) and kind in {"dataclass", "dict"}:
            name = text_of(given, "type", "a question's data")
            data = _without_base(name, fields_of(value, "a question's data"))
        found.append(Asked(request_id, executor_id, data, None))
    return found
