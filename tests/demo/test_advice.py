"""Errors are told in words of the command line, and going on is advised only where it can work."""

import sys
from pathlib import Path

import pytest

from rehydrate.demo.advice import explain
from rehydrate.demo.options import parse
from rehydrate.errors import (
    CheckpointCorruptError,
    CommitConflictError,
    GraphChangedError,
    NoHandlerError,
    RehydrateError,
    RunBusyError,
    RunFailedError,
    SaveFailedError,
)

AGAIN = "Go on with: this"


@pytest.mark.parametrize(
    "error",
    [
        RunBusyError("r", "o"),
        CommitConflictError("r", "1", "2"),
        RunFailedError("r", "scan", "no"),
        SaveFailedError("r", "disk full"),
    ],
)
def test_what_can_go_on_is_told_how(error: RehydrateError) -> None:
    """The text ends with the command and names no argument of the library's calls."""
    told = explain(error, AGAIN)
    assert told.startswith(f"error: {error.text()} ")
    assert told.endswith(AGAIN)
    assert "=" not in told


@pytest.mark.parametrize(
    "error",
    [CheckpointCorruptError("store", "no"), GraphChangedError("audit", ("scan",)), NoHandlerError("scan", "int")],
)
def test_what_cannot_go_on_is_not_told_to(error: RehydrateError) -> None:
    """The same command again would fail in the same way."""
    assert AGAIN not in explain(error, AGAIN)
    assert "=" not in explain(error, AGAIN)


def test_a_run_at_work_elsewhere_is_waited_for_or_ended() -> None:
    """The command has no takeover."""
    assert explain(RunBusyError("r", "o"), AGAIN) == (
        "error: run 'r' is being executed by owner o. "
        "Wait for that process, or end it: its run is free at once. Go on with: this"
    )


@pytest.mark.parametrize("on_path", [True, False])
def test_the_command_to_go_on_is_the_one_that_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, on_path: bool
) -> None:
    """Started as `rehydrate` it is that, else a module of this interpreter; by name only where the shell finds it."""
    for name in ("rehydrate", "python3"):
        (tmp_path / name).touch(mode=0o755)
    place = "" if on_path else f"{tmp_path}/"
    monkeypatch.setenv("PATH", str(tmp_path) if on_path else "/nowhere")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "rehydrate"), "demo"])
    assert parse(["--store", "a b"]).again == f"Go on with: {place}rehydrate demo --store 'a b' --run audit"
    secret = ["--store", "postgresql://me:secret@host/db"]
    assert parse(secret).again == f'Go on with: {place}rehydrate demo --store "$REHYDRATE_STORE" --run audit'
    monkeypatch.setattr(sys, "argv", ["somewhere/licence_audit.py"])
    assert parse(["--journal", "j", "--check", "--installed-in", "/env"]).again == (
        f"Go on with: {place}python3 -m rehydrate.demo.licence_audit "
        "--store sqlite:///audit.db --run audit --journal j --installed-in /env --check"
    )
