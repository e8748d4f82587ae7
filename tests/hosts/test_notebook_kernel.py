"""What a real Jupyter kernel shows, in an environment of its own: `.venv-proof-kernel`."""

import json
import subprocess
from pathlib import Path

import pytest

from release.environments import Environment

ROOT = Path(__file__).parents[2]

DEFINED = """
import asyncio
from typing import Never
from rehydrate import Executor, SqliteCheckpointStorage, WorkflowBuilder, WorkflowContext, WorkflowExecutor
from rehydrate import executor, handler, response_handler
from rehydrate.hosts.notebook import show_progress

@executor(id="work")
async def work(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds

class Ask(Executor):
    @handler
    async def on_number(self, number: float, ctx: WorkflowContext[Never, str]) -> None:
        ctx.request_info("Go <b>on</b>?", response_type=bool)

    @response_handler
    async def on_answer(self, question: str, yes: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output("went on" if yes else "stopped")

inner = WorkflowBuilder("inner", work).add_chain([work, Ask("ask")]).build()
store = SqliteCheckpointStorage("runs.db")
outer = WorkflowBuilder("outer", WorkflowExecutor(inner, "review"), checkpoint_storage=store).build()
outer
"""
CELLS = [
    {"source": DEFINED},
    {"source": "result = await show_progress(outer.run(0.4, run_id='r', stream=True))\nresult"},
    {"source": "outer.run_sync(checkpoint=result, responses=[result.pending_requests[0].answer(True)])"},
    {"source": "await show_progress(outer.run(600.0, run_id='long', stream=True))", "interrupt_at": "· work"},
    {"source": "(await store.head('long')).header.status.value"},
    {"source": "await show_progress(outer.run('text', stream=True))"},
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[str, dict[str, str]]]]:
    environment = Environment(ROOT / ".venv-proof-kernel")
    environment.install("ipykernel>=6.29", "jupyter-client>=8", "--editable", str(ROOT))
    done = subprocess.run(
        [environment.python, ROOT / "tests" / "hosts" / "kernel.py"],
        input=json.dumps(CELLS), capture_output=True, text=True, timeout=120, check=False,
        cwd=tmp_path_factory.mktemp("kernel"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.proof
def test_a_real_kernel_shows_a_workflow_as_its_drawing(shown) -> None:
    """The last line of a cell is the workflow."""
    [(kind, said)] = shown[0]
    assert (kind, said["image/svg+xml"][:5]) == ("execute_result", "<svg ")


@pytest.mark.proof
def test_a_real_kernel_draws_progress_in_one_place_and_the_result_once(shown) -> None:
    """The place is updated while the run goes on, and ends with a line; the cell's own result follows it."""
    kinds = [kind for kind, _ in shown[1]]
    assert (kinds[0], kinds[1], kinds[-1]) == ("display_data", "update_display_data", "execute_result")
    pages = [said["text/html"] for _, said in shown[1]]
    assert any("· work" in page for page in pages)
    assert ("IDLE_WITH_PENDING_REQUESTS" in pages[-2], "<table>" in pages[-2]) == (True, False)
    assert "Go &lt;b&gt;on&lt;/b&gt;?" in pages[-1]
    [(_, answered)] = shown[2]
    assert "went on" in answered["text/html"]


@pytest.mark.proof
def test_a_real_kernel_that_is_interrupted_stops_the_run(shown) -> None:
    """The cell ends with the error of an interruption, and the run is at rest in its store."""
    assert (shown[3][-1][0], "RUNNING" in shown[3][-2][1]["text/html"]) == ("error", False)
    [(_, status)] = shown[4]
    assert status["text/plain"] == "'CANCELLED'"


@pytest.mark.proof
def test_a_real_kernel_shows_why_a_call_was_refused(shown) -> None:
    """The place does not say that something is running."""
    assert "NOT BEGUN</b>, MessageTypeError" in shown[5][-2][1]["text/html"]
    assert shown[5][-1][1]["text/plain"].startswith(
        "MessageTypeError: workflow 'outer' was given a message of type str"
    )
