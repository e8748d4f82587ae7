"""Case 61: a run of a script's `__main__` and a run of its import are the same."""

import asyncio
import subprocess
import sys
from pathlib import Path

from rehydrate import SqliteCheckpointStorage, WorkflowCheckpoint
from tests.nested import pausing


def script(*arguments: str) -> str:
    """Run the module as a program and return what it prints."""
    command = [sys.executable, str(Path(pausing.__file__)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_that_paused_in_a_script_goes_on_where_its_module_is_imported(tmp_path) -> None:
    """Case 61: message, question, state and executor state have the types of the imported module."""
    file = str(tmp_path / "runs.db")
    checkpoint = script(file)

    async def go_on():
        store = SqliteCheckpointStorage(file)
        paused = await pausing.build().run(checkpoint=checkpoint, checkpoint_storage=store)
        (question,) = paused.pending_requests
        answer = question.answer(pausing.Decision(False, "importer"))
        result = await pausing.build().run(checkpoint=paused, responses=[answer], checkpoint_storage=store)
        return question, result.outputs

    question, outputs = asyncio.run(go_on())
    assert question.data == pausing.Claim.Question(pausing.Claim.Filed("c-1", pausing.Grade.HIGH))
    assert (question.path, question.response_type) == ("review#1", pausing.Decision)
    assert outputs == ["c-1 HIGH: False by importer"]


def test_a_run_that_paused_where_a_module_is_imported_goes_on_in_its_script(tmp_path) -> None:
    """Case 61: the other way round."""
    file = str(tmp_path / "runs.db")
    paused = asyncio.run(pausing.main(file))
    assert script(file, paused) == "c-1 HIGH: True by script"


def test_no_record_names_a_module() -> None:
    """Case 61: a checkpoint has the names of types without modules."""
    first = asyncio.run(pausing.build().run("c-1"))
    data = first.checkpoint.to_bytes()
    assert b"Claim.Filed" in data
    for module in (b"__main__", b"pausing", b"tests"):
        assert module not in data
    assert WorkflowCheckpoint.from_bytes(data).pending_request_ids == (first.pending_requests[0].request_id,)
