"""Folders of many files: what an import holds of them, and what becomes of files that change meanwhile."""

import json
import tracemalloc
from pathlib import Path

from rehydrate import WorkflowBuilder
from tests.agent_framework.here import Kinds, import_from


def written(folder: Path, count: int, state: dict[str, object], *, chained: bool = True) -> Path:
    """Write checkpoints of one run, or of one each, and return their folder."""
    folder.mkdir()
    for number in range(count):
        document = {
            "workflow_name": "kinds",
            "graph_signature_hash": "0",
            "checkpoint_id": f"c-{number}",
            "previous_checkpoint_id": f"c-{number - 1}" if chained and number else None,
            "timestamp": "2026-03-01T12:30:00+00:00",
            "messages": {},
            "state": state,
            "pending_request_info_events": {},
            "iteration_count": number,
            "metadata": {},
            "version": "1.0",
        }
        (folder / f"{number:03d}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def kinds():
    """Return a workflow that takes these files."""
    return WorkflowBuilder("kinds", Kinds("kinds")).build()


def peak_of(folder: Path) -> int:
    """Return how many bytes an import holds at most."""
    tracemalloc.start()
    try:
        (run,) = import_from(folder, kinds()).runs
        assert len(run.checkpoint.state["said"]) == 2000
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_import_holds_one_file_at_a_time(tmp_path) -> None:
    """The checkpoints of a long run would fill the memory; ten more of them take less than one, of about 700 kB."""
    state = {"said": [{"role": "user", "text": f"{number}"} for number in range(2000)]}
    few = peak_of(written(tmp_path / "few", 2, state))
    assert peak_of(written(tmp_path / "many", 12, state)) - few < 500_000


def test_a_file_that_changes_during_the_import_is_refused(tmp_path) -> None:
    """What was judged is what is taken in: here the first file is placed, and its type writes the second one anew."""
    folder = written(tmp_path / "folder", 2, {}, chained=False)
    first, second = sorted(folder.iterdir())
    document = json.loads(first.read_text(encoding="utf-8"))
    document["state"] = {"wish": {"__af_dataclass__": "app:Wish", "value": {"text": "a"}}}
    first.write_text(json.dumps(document), encoding="utf-8")

    def wish(fields: dict[str, object]) -> object:
        second.write_text(second.read_text(encoding="utf-8").replace("c-1", "c-2"), encoding="utf-8")
        return fields["text"]

    done = import_from(folder, kinds(), types={"app:Wish": wish}, skip_refused=True)
    assert [run.run_id for run in done.runs] == ["c-0"]
    assert done.refused == {
        "001.json": "it was changed during the import: repeat it once nothing writes into the folder"
    }
