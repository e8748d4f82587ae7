"""The signature of a graph: canonical text that says what a checkpoint needs of it, and how two of them differ.

Not in it: code, policies, limits, module paths, order of building. One line is one fact, `subject: label value; ...`; a
subject is a path, so that lines can be compared by path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from rehydrate.graph.definition import Definition
from rehydrate.graph.edges import DirectGroup, EdgeGroup, FanInGroup, FanOutGroup, MapGroup, MultiSelectionGroup
from rehydrate.graph.executor import Executor, FunctionExecutor
from rehydrate.graph.graph_spec import edges_of, kind_of, names_in
from rehydrate.graph.hints import Hint, describe
from rehydrate.graph.nesting import Nesting
from rehydrate.graph.specs import each_spec
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.graph.traffic import distinct, takes

TypeName = Callable[[type], str]
ExecutorKind: TypeAlias = Literal["class", "function", "workflow", "body"]
#: What structures a line, and what could be taken for it inside of a name.
_SPECIAL: Final = re.compile(r"[\\:;,>|()\[\]]")
_LABELS: Final = re.compile(r"(condition name|selection name|\S+) (.*)", re.DOTALL)


def signature_text(definition: Definition, type_name: TypeName) -> str:
    """Return the canonical text of a graph and every nested one; `type_name` gives the stable name of a class."""

    def named(cls: type) -> str:
        return _shown(type_name(cls))

    lines = [
        f"(workflow): name {_shown(definition.name)}; version {definition.version}; start {_shown(definition.start)}",
        *(f"(state {_shown(key)}): reducer {_shown(reducer.name)}" for key, reducer in definition.reducers.items()),
        *_edge_lines(definition),
    ]
    for name, executor in definition.executors.items():
        lines.append(f"{_shown(name)}: {'; '.join(_executor_facts(executor, named))}")
        if isinstance(executor, WorkflowExecutor):
            facts = "; ".join(_nesting_facts(executor.nesting, has_edges=bool(definition.outgoing.get(name))))
            lines[-1] += f"; {facts}" if facts else ""
            lines += [f"{_shown(name)}/{line}" for line in executor.definition.signature.split("\n")]
    return "\n".join(sorted(lines))


def differences(old: str, new: str) -> tuple[str, ...]:
    """Return how one signature became another, a line per path; nothing for what is below a lost or new executor."""
    before, after = _by_subject(old), _by_subject(new)
    lost, added = before.keys() - after.keys(), after.keys() - before.keys()
    found: list[str] = []
    for subject in sorted(before.keys() | after.keys()):
        if any(above in lost or above in added for above in _enclosing(subject)):
            continue
        if subject in lost:
            found.append(f"{subject}: missing now")
        elif subject in added:
            found.append(f"{subject}: new")
        else:
            found += [f"{subject}: {change}" for change in _changes(before[subject], after[subject])]
    return tuple(found)


def _shown(name: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\x{ord(found.group()):02x}", name)


def _executor_facts(executor: Executor, named: TypeName) -> Iterator[str]:
    yield f"kind {executor_kind(executor)}"
    if isinstance(executor, WorkflowExecutor):  # its types are in the lines of its workflow
        return
    specs = executor.handler_table.specs
    each = list(each_spec(specs))
    facts: list[tuple[str, Iterable[Hint]]] = [
        ("takes", takes(executor)),
        ("sends", distinct(hint for spec in each for hint in spec.sends)),
        ("yields", distinct(hint for spec in each for hint in spec.yields)),
        ("returns", distinct(hint for spec in specs.handlers for hint in spec.returns)),
    ]
    for label, hints in facts:
        texts = sorted(describe(hint, named) for hint in hints)
        if texts:
            yield f"{label} {', '.join(texts)}"
    asks = [f"{describe(s.request, named)} -> {describe(s.response, named)}" for s in specs.response_handlers]
    if asks:
        yield f"asks {', '.join(sorted(asks))}"


def _nesting_facts(nesting: Nesting, *, has_edges: bool) -> Iterator[str]:
    """Give what decides where records of a sub-workflow stand and where they go; nothing for what is the default."""
    if nesting.shared:
        yield "isolation shared"
    if nesting.intercepts:
        yield "requests intercept"
    if nesting.forwards == "output" and has_edges:
        yield "forwards output"
    for label, mapping in (("inputs", nesting.inputs), ("outputs", nesting.outputs)):
        if mapping:
            yield f"{label} {', '.join(sorted(f'{_shown(a)} as {_shown(b)}' for a, b in mapping.items()))}"


def executor_kind(executor: Executor) -> ExecutorKind:
    """Return the word for a kind of executor."""
    if isinstance(executor, WorkflowExecutor):
        return "workflow"
    if executor.is_body:
        return "body"
    return "function" if isinstance(executor, FunctionExecutor) else "class"


def _edge_lines(definition: Definition) -> Iterator[str]:
    for source, groups in definition.outgoing.items():
        numbers: dict[str, int] = {}
        for group in groups:
            kind = kind_of(group)
            numbers[kind] = numbers.get(kind, 0) + 1
            for place, edge in enumerate(edges_of(group), 1):
                if edge.source == source:
                    facts = "; ".join(_edge_facts(group, numbers[kind], place))
                    yield f"{_shown(source)} -> {_shown(edge.target)}: kind {kind}{'; ' if facts else ''}{facts}"


def _edge_facts(group: EdgeGroup, number: int, place: int) -> Iterator[str]:
    """Give the facts of one edge: what tells its group from others of its source, and its place in the group."""
    names = names_in(group)
    if isinstance(group, FanInGroup):
        yield f"place {place}"
    elif isinstance(group, DirectGroup):
        if group.condition is not None:
            yield f"condition name {_shown(group.name) if group.name else '(none)'}"
    elif isinstance(group, FanOutGroup):
        yield f"group {number}"
    elif isinstance(group, MapGroup):
        yield f"into {_shown(group.edge.into or '')}"
    elif isinstance(group, MultiSelectionGroup):
        yield f"group {number}; place {place}"
        if group.name:
            yield f"selection name {_shown(group.name)}"
    else:
        yield f"group {number}; case {place if place <= len(names) else 'default'}"
        if place <= len(names) and (name := names[place - 1]):
            yield f"condition name {_shown(name)}"


def _by_subject(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.split("\n"):
        subject, _, facts = line.partition(": ")
        found.setdefault(subject, []).append(facts)
    return found


def _enclosing(subject: str) -> Iterator[str]:
    parts = subject.split("/")
    return ("/".join(parts[:index]) for index in range(1, len(parts)))


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    gone = [facts for facts in before if facts not in after]
    came = [facts for facts in after if facts not in before]
    if len(gone) != 1 or len(came) != 1:
        if gone or came:
            yield f"was {' and '.join(gone) or 'nothing'}, is {' and '.join(came) or 'nothing'}"
        return
    old, new = _labelled(gone[0]), _labelled(came[0])
    for label in dict.fromkeys([*old, *new]):
        if old.get(label) != new.get(label):
            yield f"{label} was {old.get(label, 'nothing')}, is {new.get(label, 'nothing')}"


def _labelled(facts: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for fact in facts.split("; "):
        match = _LABELS.fullmatch(fact)
        label, value = match.groups() if match else (fact, "yes")
        found[label] = value
    return found
