"""The command `rehydrate show-file`: files of a file store as JSON, for a person to read."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from rehydrate import FileCheckpointStorage, WorkflowBuilder, WorkflowContext, executor
from rehydrate.main import main
from tests.stores.raw_files import files, fill


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@executor(id="assess")
async def assess(claim: Claim, ctx: WorkflowContext) -> str:
    ctx.set_state("seen", {"claims": (claim,)})
    return claim.id


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Return what the command prints of a file."""
    assert main(["show-file", str(path)]) == 0
    return json.loads(capsys.readouterr().out)


def test_values_of_a_run_are_shown_in_plain_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A commit shows its header, and each record and event with plain values under the names of their fields."""
    store = FileCheckpointStorage(tmp_path / "runs", keep_events=True)
    workflow = WorkflowBuilder("claims", assess, checkpoint_storage=store).build()
    assert workflow.run_sync(Claim("c-1", 90), run_id="inbox-7").outputs == ["c-1"]
    commits = sorted((tmp_path / "runs/runs/inbox-7/commits-1").rglob("*.commit"))
    first, last = shown(commits[0], capsys), shown(commits[-1], capsys)
    assert (first["header"]["run_id"], first["header"]["status"]) == ("inbox-7", "RUNNING")
    records = {(put["path"], put["kind"]): put["record"] for put in first["puts"]}
    payload = {"type": "Claim", "value": {"$type": "Claim", "id": "c-1", "amount": 90}}
    assert records["/", "step"]["payloads"] == [payload]
    states = [put["record"] for put in last["puts"] if put["kind"] == "state"]
    assert [state["value"]["value"] for state in states] == [
        {"claims": [{"$type": "Claim", "id": "c-1", "amount": 90}]}
    ]
    outputs = [event["told"]["event"]["data"] for event in last["events"] if event["told"]["kind"] == "OutputYielded"]
    assert [output["value"] for output in outputs] == ["c-1"]


def test_every_file_of_a_store_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Marker, head, pointers, names and offers are shown as they are; records of no workflow as bytes."""
    path = tmp_path / "runs"
    fill(path)
    seen = {file.name.partition("-")[0]: shown(file, capsys) for file in files(path)}
    assert seen["head.json"]["checkpoint_id"] == "run:2"
    assert seen["tags.json"]["tags"] == {"begun": "run:0"}
    assert seen["rehydrate"]["format"] == 1
    put = seen["0000000000.commit"]["puts"][0]
    assert (put["key"], put["record"]["base64"]) == ("a", "Zmlyc3QgYQ==")


def test_damage_is_said_with_exit_code_six(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with a flipped bit or cut off prints nothing but the error."""
    path = tmp_path / "runs"
    fill(path)
    for file in files(path):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        assert main(["show-file", str(file)]) == 6
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(f"error [checkpoint-corrupt]: file {str(file)!r} is damaged: ")
        assert main(["show-file", str(file), "--json"]) == 6
        assert json.loads(capsys.readouterr().out)["error"]["code"] == "checkpoint-corrupt"


@pytest.mark.parametrize("name", ["nowhere.json", "other.json", "other.commit.txt", "."])
def test_another_file_is_refused_with_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A file that is not there, a folder, and what no store has written are refused."""
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "other.commit.txt").write_bytes(b"\xff\x00")
    assert main(["show-file", str(tmp_path / name)]) == 2
    assert capsys.readouterr().err.startswith("error [wrong-call]: file ")


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """No path, or two of them, print how the command is called."""
    for arguments in (["show-file"], ["show-file", "a", "b"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    assert "usage: rehydrate" in capsys.readouterr().err
