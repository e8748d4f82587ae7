"""The command line in this process: what it prints and its exit code."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehydrate.main import main
from tests.hosts.commands import APP, Command, Done, loaded_anew


@pytest.fixture
def anew() -> Iterator[None]:
    """Forget the modules that a command loads, and where it looked for them."""
    with loaded_anew():
        yield


@pytest.fixture
def command(anew: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run `rehydrate` with these words, by default on `payment` and a store in a folder of its own."""
    for name in [name for name in os.environ if name.startswith("REHYDRATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REHYDRATE_APP", f"{APP}:payment")
    monkeypatch.setenv("REHYDRATE_STORE", "runs.db")

    def run(*words: str) -> Done:
        capfd.readouterr()
        try:
            code = main(list(words))
        except SystemExit as ended:  # of completion
            code = int(ended.code or 0)
        return Done(code, *capfd.readouterr())

    return run
