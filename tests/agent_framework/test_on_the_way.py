"""What was on its way or held by a join: each checkpoint of a run comes here to what it comes to there."""

import asyncio
import json
from pathlib import Path

import pytest

from rehydrate import InMemoryCheckpointStorage, Service, Status, Worker, import_agent_framework
from tests.agent_framework.here import BUILDERS, FILES, import_files, import_from
from tests.agent_framework.test_refusals import refused

#: For each checkpoint of a run, oldest first: what comes out at once, and what once its questions are answered. The
#: real package gave the same for these files, but for what the executors here say of themselves: `asked` is what they
#: kept, and there is none of it where a question was asked here.
BOTH = "c-8: True, asked 1, last c-8; c-8: False, asked 1, last c-8"
ONE = "c-8: True; c-8: False, asked 1, last c-8"
LOOKED = "looked at c-10; looked at c-10"
AGAIN = "looked at c-10 again; looked at c-10 again"
ENDS = {
    "pair": [
        ([], ["c-8 True; c-8 False"]),
        ([], ["c-8 True; c-8 False"]),
        ([], [BOTH]),
        ([], [BOTH]),  # the first answer is on its way
        ([], [ONE]),  # what became of it is on its way to the join
        ([], [ONE]),  # the join holds it
        ([ONE], []),  # the second answer is on its way
        (["c-8: True; c-8: False"], []),
        ([], []),
    ],
    "inside": [([], ["paid looked at c-9 again; c-9 True"]), ([], ["paid looked at c-9; c-9: True, asked 1"])],
    "beside": [
        ([AGAIN], ["paid c-10 True"]),
        ([AGAIN], ["paid c-10 True"]),
        ([LOOKED], ["paid c-10: True, asked 1"]),  # the join has both, and a question is open beside it
        ([], ["paid c-10: True, asked 1"]),
    ],
    "desk_done": [
        ([], ["paid c-12 True"]),
        ([], ["paid c-12 True"]),
        ([], ["paid c-12: True, asked 1, last c-12"]),
        ([], ["paid c-12: True, asked 1, last c-12"]),
        (["paid c-12: True, asked 1, last c-12"], []),  # the answer is on its way to the one who passed it on
        (["paid c-12: True, asked 1, last c-12"], []),  # and from there to the sub-workflow
        (["paid c-12: True"], []),
        ([], []),
    ],
    "deep_done": [
        ([], ["paid paid c-12 True"]),
        ([], ["paid paid c-12 True"]),
        ([], ["paid paid c-12: True, asked 1, last c-12"]),
        (["paid paid c-12: True, asked 1, last c-12"], []),  # the answer is on its way, two levels up
        (["paid paid c-12: True"], []),
        ([], []),
    ],
}


def in_order(release: str, scenario: str, **options) -> list:
    """Return the runs of all checkpoints of a scenario, in the order in which they were written."""
    folder = FILES / release / scenario
    done = import_files(release, scenario, every=True, **options)
    return sorted(done.runs, key=lambda run: json.loads((folder / run.file).read_text(encoding="utf-8"))["timestamp"])


def ends(scenario: str, checkpoint) -> tuple[list, list]:
    """Return what comes of a run at once, and once its questions are answered: no for `right`, else yes."""
    workflow = BUILDERS[scenario]()
    result = workflow.run_sync(checkpoint=checkpoint)
    if not result.pending_requests:
        return result.outputs, []
    given = [request.answer(request.path != "right#1") for request in result.pending_requests]
    return result.outputs, workflow.run_sync(checkpoint=result, responses=given).outputs


@pytest.mark.parametrize("scenario", list(ENDS))
def test_each_checkpoint_comes_to_what_it_comes_to_there(scenario) -> None:
    """A join of sub-workflows fires once, with all; no open question beside it holds it back; no answer is lost."""
    assert [ends(scenario, run.checkpoint) for run in in_order("1.23.0", scenario)] == ENDS[scenario]


def test_what_goes_on_is_running_and_what_waits_is_not() -> None:
    """A join that has all goes on without anybody; one that waits for an answer stands still."""
    pair = [run.checkpoint.status for run in in_order("1.23.0", "pair")]
    waits, goes_on, ended = Status.IDLE_WITH_PENDING_REQUESTS, Status.RUNNING, Status.IDLE
    assert pair == [goes_on, goes_on, waits, goes_on, waits, waits, goes_on, goes_on, ended]
    assert [run.checkpoint.status for run in in_order("1.23.0", "beside")] == [goes_on, goes_on, goes_on, waits]


def test_a_worker_takes_up_what_goes_on() -> None:
    """The three of four that are running; all then wait for the answer, and the joins have given their lists."""

    async def scenario() -> None:
        store = InMemoryCheckpointStorage()
        workflow, outputs = BUILDERS["beside"](), []
        await import_agent_framework(FILES / "1.23.0" / "beside", workflow, storage=store, every=True)
        worker = Worker(Service(store, [workflow]), told=lambda _, end: outputs.append(end.outputs))
        assert await worker.finish() == 3
        assert sorted(outputs) == [[AGAIN], [AGAIN], [LOOKED]]
        assert {header.status for header in await store.runs()} == {Status.IDLE_WITH_PENDING_REQUESTS}

    asyncio.run(scenario())


def test_an_answer_on_its_way_below_arrives_in_older_files_too() -> None:
    """Those keep the question in the execution of the sub-workflow; what a join held they do not."""
    runs = in_order("1.0.0", "pair")
    inner = "asked 0, last None"
    assert ends("pair", runs[1].checkpoint) == ([], [f"c-8: True, {inner}; c-8: False, {inner}"])
    assert ends("pair", runs[2].checkpoint) == ([], [f"c-8: True, {inner}; c-8: False, {inner}"])
    assert len(runs[2].questions) == 1


def test_without_messages_the_question_of_an_answer_is_open_again() -> None:
    """It is left out by name, and what it would have answered is asked once more."""
    run = in_order("1.23.0", "pair", leave_out=["messages"])[3]
    assert run.left_out == ("a message from 'left'",)
    assert len(run.questions) == 2
    assert ends("pair", run.checkpoint) == ([], [BOTH])


def test_without_joins_what_they_held_below_is_told() -> None:
    """By the path of the sub-workflow."""
    assert in_order("1.23.0", "inside", leave_out=["joins"])[1].left_out == ("what joins held in checks#1",)


@pytest.mark.parametrize("scenario", list(ENDS))
def test_nothing_is_said_of_joins_where_they_held_nothing(scenario) -> None:
    """Newer files say it by saying nothing; they are known by what else is in them."""
    assert not any("joins" in left for run in in_order("1.23.0", scenario) for left in run.left_out)


def answered_file(tmp_path: Path, change) -> Path:
    """Return a folder with the file whose first answer is on its way, after a change to its text as JSON."""
    run = in_order("1.23.0", "pair")[3]
    text = (FILES / "1.23.0" / "pair" / run.file).read_text(encoding="utf-8")
    document = json.loads(text)
    change(document)
    (tmp_path / "one.json").write_text(json.dumps(document), encoding="utf-8")
    return tmp_path


def test_an_answer_whose_question_is_nowhere_is_refused(tmp_path) -> None:
    """The sub-workflow that asked is not in the file; without the message the rest can be had."""
    folder = answered_file(tmp_path, lambda document: document["state"]["_executor_state"].pop("left"))
    why = refused(folder, BUILDERS["pair"]())
    assert "a message from 'left': it is the answer to question" in why
    assert "of a sub-workflow, which is not in the file. To do without it, leave out 'messages'" in why
    (run,) = import_from(folder, BUILDERS["pair"](), leave_out=["messages"]).runs
    assert run.left_out == ("a message from 'left'",)


def test_an_answer_below_is_one_answer(tmp_path) -> None:
    """A second one to the same question is refused."""

    def double(document: dict) -> None:
        document["messages"]["internal:left"] *= 2

    assert "is answered, and open or answered once more" in refused(answered_file(tmp_path, double), BUILDERS["pair"]())


def test_an_answer_below_to_an_open_question_is_refused(tmp_path) -> None:
    """The parent has it open, too."""

    def reopen(document: dict) -> None:
        asked = json.loads((FILES / "1.23.0" / "pair" / in_order("1.23.0", "pair")[2].file).read_text(encoding="utf-8"))
        document["pending_request_info_events"] = asked["pending_request_info_events"]

    assert "is answered, and open or answered once more" in refused(answered_file(tmp_path, reopen), BUILDERS["pair"]())
