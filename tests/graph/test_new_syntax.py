"""Type parameters and aliases in the syntax that came with Python 3.12; older ones cannot even read it."""

import importlib.util
import sys

import pytest

from rehydrate import WorkflowBuilder
from rehydrate.errors import MessageTypeError, WorkflowBuildError

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="this Python does not have the syntax")

SOURCE = """
from dataclasses import dataclass
from typing import Never

from rehydrate import Executor, WorkflowContext, executor, handler

type Json = None | int | str | list[Json] | dict[str, Json]
type Deep = int | list[Deep | None]
type Numbers = list[int]
type Pair[A] = tuple[A, A]
type Endless = Endless | int

@dataclass
class Claim:
    amount: int

@dataclass
class Box[T]:
    content: T

@dataclass
class Document:
    data: Json
    boxes: list[Box[Claim]]

class Relay[T](Executor):
    @handler
    async def on_message(self, message: T, ctx: WorkflowContext[Never, T]) -> None:
        ctx.yield_output(message)

class ClaimRelay(Relay[Claim]): ...

@executor
async def json(message: Json) -> Json:
    return message

@executor
async def deep(message: Deep) -> Deep:
    return message

@executor
async def numbers(message: Numbers | None) -> Numbers | None:
    return message

@executor
async def pair(message: Pair[int]) -> Pair[int]:
    return message

@executor
async def box(message: Box[Claim]) -> Box[Claim]:
    return message

@executor
async def document(message: Document) -> Document:
    return message

@executor
async def either[T: int | str](message: T) -> list[T]:
    return [message]

@executor
async def endless(message: Endless) -> None: ...
"""


@pytest.fixture(params=["", "from __future__ import annotations\n"], ids=["at once", "postponed"])
def module(request, tmp_path):
    """The source as a module, with annotations of both kinds."""
    file = tmp_path / "new_syntax.py"
    file.write_text(request.param + SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("new_syntax", file)
    made = importlib.util.module_from_spec(spec)
    sys.modules["new_syntax"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["new_syntax"]


def test_what_the_new_syntax_names_is_taken_and_told_apart(module) -> None:
    """Aliases with and without parameters, also one that contains itself; parameters of classes and functions."""
    claim = module.Claim(5)
    boxes = [module.Box(claim)]
    for name, fits, does_not in [
        ("json", {"a": [1, None, {"b": []}]}, {"a": [1.5]}),
        ("deep", [1, None, [2, [None]]], [1, [1.5]]),
        ("numbers", [1], ["a"]),
        ("pair", (1, 2), (1, "a")),
        ("box", module.Box(claim), claim),
        ("document", module.Document({"a": [1]}, boxes), claim),
        ("either", "a", 1.5),
    ]:
        workflow = WorkflowBuilder("new", getattr(module, name)).build()
        assert workflow.run_sync(fits).output == ([fits] if name == "either" else fits)
        with pytest.raises(MessageTypeError):
            workflow.run_sync(does_not)


def test_an_alias_of_itself_is_described_by_its_name(module) -> None:
    """Where it comes again; so the text ends."""
    (described,) = WorkflowBuilder("new", module.json).build().describe().executors
    assert described.takes[:3] == ("None", "int", "str")
    assert described.takes[3] == "list[None | dict[str, Json] | int | list[Json] | str]"


def test_a_subclass_says_what_a_parameter_of_its_base_stands_for(module) -> None:
    """As with type variables of the older kind."""
    workflow = WorkflowBuilder("new", module.ClaimRelay("r")).build()
    assert workflow.describe().executors[0].takes == ("Claim",)
    assert workflow.run_sync(module.Claim(1)).output == module.Claim(1)


def test_an_alias_that_says_nothing_but_itself_is_a_problem_of_the_build(module) -> None:
    """Reading it would never end."""
    with pytest.raises(WorkflowBuildError, match="they lead back to themselves without end"):
        WorkflowBuilder("new", module.endless).build()
