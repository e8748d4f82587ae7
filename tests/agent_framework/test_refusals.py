"""What an import refuses, passes over and maps: folders, layouts, types, executors, calls."""

import asyncio
import json
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Never

import pytest

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)
from rehydrate.errors import AgentFrameworkImportError, WrongCallError
from rehydrate.service.agent_framework.inert import Refused
from rehydrate.service.agent_framework.values import Values
from tests.agent_framework.here import (
    FILES,
    Assess,
    Claim,
    Everything,
    Inner,
    Intake,
    Level,
    Pay,
    Question,
    Review,
    flat,
    import_from,
    joined,
)

#: Types in the state that some workflows here do not have.
PLAIN = {f"claims:{name}": None for name in ("Everything", "Review", "Level", "Place")}
NEW = FILES / "1.23.0"


def newest(scenario: str, release: str = "1.23.0") -> Path:
    """Return the file that none comes behind."""
    files = {path: json.loads(path.read_text(encoding="utf-8")) for path in (FILES / release / scenario).glob("*.json")}
    followed = {data["previous_checkpoint_id"] for data in files.values()}
    (found,) = [path for path, data in files.items() if data["checkpoint_id"] not in followed]
    return found


def refused(folder: Path, workflow, **options) -> str:
    """Return why an import of one file is refused."""
    with pytest.raises(AgentFrameworkImportError) as caught:
        import_from(folder, workflow, **options)
    ((_, why),) = caught.value.refused
    return why


def changed(tmp_path: Path, scenario: str, **fields: object) -> Path:
    """Return a folder with the newest file of a scenario, some of its fields changed."""
    data = json.loads(newest(scenario).read_text(encoding="utf-8"))
    data.update(fields)
    (tmp_path / "one.json").write_text(json.dumps({k: v for k, v in data.items() if v is not ...}), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"version": "2.0"}, "it has version '2.0', and version '1.0' is known"),
        ({"checkpoint_id": ...}, "it is no checkpoint of agent-framework-core"),
        ({"state": ...}, "its layout is none that is known"),
        ({"workflow_name": 7}, "the checkpoint has no 'workflow_name'"),
        ({"messages": []}, "the messages is no dict"),
        ({"pending_request_info_events": {"a": 1}}, "a question is no dict"),
        ({"timestamp": "yesterday"}, "its timestamp 'yesterday' is none"),
        ({"checkpoint_id": "a/b"}, "run id"),
        ({"state": {"_executor_state": {"assess": 5}}}, "the state of 'assess' is no dict"),
        ({"state": {"": 1}}, "state key"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, fields, why) -> None:
    """By what is wrong, and nothing is stored."""
    store = InMemoryCheckpointStorage()
    assert why in refused(changed(tmp_path, "flat", **fields), flat(), storage=store)
    assert asyncio.run(store.runs()) == []


def test_one_damaged_file_keeps_all_out_unless_it_is_skipped(tmp_path) -> None:
    """It might have been the newest of its run; whoever skips it is told."""
    shutil.copy(newest("flat"), tmp_path)
    (tmp_path / "torn.json").write_bytes(newest("flat").read_bytes()[:-40])
    (tmp_path / "left.json.tmp").write_text("half", encoding="utf-8")
    store = InMemoryCheckpointStorage()
    assert "damaged" in refused(tmp_path, flat(), storage=store)
    assert asyncio.run(store.runs()) == []
    done = import_from(tmp_path, flat(), storage=store, skip_refused=True)
    assert ([run.stored for run in done.runs], list(done.refused)) == ([True], ["torn.json"])


@dataclass
class Wish:
    text: str


class Other(Executor):
    @handler
    async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, str]) -> None: ...

    @response_handler
    async def on_answer(self, wish: Wish, approved: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{wish.text} {approved}")

    @response_handler
    async def on_fields(self, fields: dict[str, object], approved: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(f"{sorted(fields)} {approved}")


@pytest.mark.parametrize(
    ("question", "output"),
    [
        (lambda fields: Wish(fields["text"]), "Pay 5000? True"),
        (None, "['asked', 'claim', 'text'] True"),
    ],
)
def test_a_type_that_the_workflow_lacks_can_be_mapped(question, output) -> None:
    """By a function of its fields, or to the dict of them."""
    workflow = WorkflowBuilder("flat", Other("assess")).build()
    done = import_from(NEW / "flat", workflow, types={**PLAIN, "claims:Question": question}, leave_out=["executors"])
    (run,) = done.runs
    (ours,) = run.questions.values()
    assert workflow.run_sync(checkpoint=run.checkpoint, responses={ours: True}).outputs == [output]


def test_the_type_of_an_answer_is_what_a_function_returns() -> None:
    """A function that does not say it is refused for that."""

    def level_of(fields: dict[str, object]) -> Level:
        return Level.HIGH

    values = Values(flat().program.codec, {"claims:Level": level_of, "claims:Other": lambda fields: fields})
    assert values.type_of(["c", "claims:Level"]) is Level
    with pytest.raises(Refused, match="does not say what it returns"):
        values.type_of(["c", "claims:Other"])


def test_a_type_of_another_name_is_mapped_to_one_here(tmp_path) -> None:
    """With the fields that it has; one that has others says which, and one that nobody stores says so."""

    @dataclass
    class Demand:
        claim: Claim
        text: str
        asked: datetime

    class Short(Other):
        @response_handler
        async def on_demand(self, demand: Demand, approved: bool, ctx: WorkflowContext[Never, str]) -> None: ...

    workflow = WorkflowBuilder("flat", Short("assess")).build()
    options = {"leave_out": ["executors", "state"]}
    (run,) = import_from(NEW / "flat", workflow, types={**PLAIN, "claims:Question": Demand}, **options).runs
    assert workflow.run_sync(checkpoint=run.checkpoint).pending_requests[0].data.text == "Pay 5000?"
    folder = changed(tmp_path, "flat")
    why = refused(folder, workflow, types={**PLAIN, "claims:Question": Wish}, **options)
    assert "does not fit Wish: nothing takes its claim, asked" in why
    why = refused(folder, workflow, types={**PLAIN, "claims:Question": lambda fields: fields["none"]}, **options)
    assert "types['claims:Question'] raised KeyError" in why
    why = refused(folder, workflow, **options)
    lacks = ", ".join(repr(f"claims:{name}") for name in ("Everything", "Place", "Level", "Review", "Question"))
    assert why == f"the list of types lacks {lacks}: add what is yours to types"


class Listening(Inner):
    @handler
    async def on_verdict(self, verdict: str, ctx: WorkflowContext[Never, str]) -> None: ...


def renamed(name: str):
    """Return `flat` under another name."""
    intake = Intake("intake")
    return WorkflowBuilder(name, intake).add_chain([intake, Assess("assess"), Pay("pay")]).build()


def test_a_question_or_state_without_its_executor_is_refused(tmp_path) -> None:
    """Each by name, and where there is a way to do without it, with that way."""
    folder = changed(tmp_path, "flat")
    intake = Intake("intake")
    workflow = WorkflowBuilder("flat", intake).add_chain([intake, Assess("review"), Pay("pay")]).build()
    assert "is of executor 'assess', which the workflow does not have" in refused(folder, workflow)
    why = refused(folder, workflow, leave_out=["executors"])
    assert "is of executor 'assess', which the workflow does not have" in why

    class Forgetful(Executor):
        @handler
        async def on_claim(self, claim: Claim, ctx: WorkflowContext[Never, str]) -> None: ...

        @handler
        async def on_kept(self, kept: Everything | Review, ctx: WorkflowContext[Never, str]) -> None: ...

        @response_handler
        async def on_answer(self, question: Question, approved: bool, ctx: WorkflowContext[Never, str]) -> None: ...

    workflow = WorkflowBuilder("flat", Forgetful("assess")).build()
    why = refused(folder, workflow)
    assert "the state of executor 'assess': there is no such executor here that overrides both checkpoint hooks" in why
    assert "leave out 'executor:assess'" in why
    (run,) = import_from(folder, workflow, leave_out=["executor:assess"]).runs
    assert run.left_out == ("the state of executor 'assess'",)


def test_a_question_that_nobody_takes_an_answer_to_is_refused(tmp_path) -> None:
    """It names the question, the executor and both types."""

    class Deaf(Intake):
        @response_handler
        async def on_answer(self, question: Question, approved: str, ctx: WorkflowContext[Claim, Never]) -> None: ...

    deaf = Deaf("assess")
    workflow = WorkflowBuilder("flat", deaf).add_chain([deaf, Assess("more"), Pay("pay")]).build()
    why = refused(changed(tmp_path, "flat"), workflow, leave_out=["executors"])
    assert "of 'assess'" in why
    assert "Question" in why
    assert "bool" in why


def test_a_question_of_an_unknown_place_below_needs_one_place(tmp_path) -> None:
    """Old files do not say who asked two levels down: with two who could have, it is refused."""
    inner = Assess("inner")
    child = WorkflowBuilder("two", inner).add_edge(inner, Listening("other")).build()
    middle = WorkflowBuilder("middle", WorkflowExecutor(child, "review1")).build()
    workflow = WorkflowBuilder("level2", WorkflowExecutor(middle, "review2")).build()
    shutil.copy(newest("deep", "1.0.0"), tmp_path)
    why = refused(tmp_path, workflow, types=PLAIN)
    assert "came from somewhere in sub-workflow 'review1', where 2 executors take an answer to it" in why


def test_a_sub_workflow_that_is_not_here_is_refused(tmp_path) -> None:
    """By the id of its executor there."""
    assert refused(changed(tmp_path, "nested"), flat()) == "the workflow has no sub-workflow 'review1'"


def test_files_of_other_workflows_are_passed_over() -> None:
    """By their name; where none has the workflow's, files of one graph are meant, and several are refused."""
    assert len(import_from(NEW / "flat", renamed("something else")).runs) == 1


def test_a_folder_of_several_workflows_is_sorted_by_name(tmp_path) -> None:
    """Without one of the workflow's name nobody can tell which are meant."""
    shutil.copy(newest("flat"), tmp_path)
    shutil.copy(newest("joined"), tmp_path)
    done = import_from(tmp_path, joined())
    assert ([run.file for run in done.runs], dict(done.passed_over)) == (
        [newest("joined").name],
        {newest("flat").name: "it is of workflow 'flat'"},
    )
    why = refused(tmp_path, renamed("something else"))
    assert why == "the folder holds files of several workflows ('flat', 'joined'), and none is called 'something else'"


def test_runs_of_workflows_without_a_name_are_taken_for_one_workflow(tmp_path) -> None:
    """Theirs gives each such workflow a random name; the graph is the same."""
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        changed(folder, "flat", workflow_name=f"WorkflowBuilder-{name}", checkpoint_id=name)
        shutil.move(folder / "one.json", tmp_path / f"{name}.json")
        folder.rmdir()
    assert [run.run_id for run in import_from(tmp_path, flat()).runs] == ["a", "b"]


@pytest.mark.parametrize("leave_out", [["everything"], "state", ["state:"], ["executor"], ["questions"]])
def test_what_cannot_be_left_out_is_a_wrong_call(leave_out) -> None:
    """The error lists what can."""
    with pytest.raises(WrongCallError, match="'state:KEY'"):
        import_from(NEW / "flat", flat(), leave_out=leave_out)


def test_a_folder_that_is_none_or_empty_is_a_wrong_call(tmp_path) -> None:
    """Nothing to import is no success."""
    with pytest.raises(WrongCallError, match="cannot be listed"):
        import_from(tmp_path / "none", flat())
    with pytest.raises(WrongCallError, match=r"no \.json file"):
        import_from(tmp_path, flat())
