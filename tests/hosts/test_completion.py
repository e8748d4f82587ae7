"""Completion in shells of their own: an id comes back to the command as it is, whatever a shell would make of it."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.commands import SMALL

_BASH = """
eval "$(_REHYDRATE_COMPLETE=bash_source rehydrate)"
COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
_rehydrate_completion rehydrate
printf '%s\\n' "${COMPREPLY[@]}"
"""
_FISH = '_REHYDRATE_COMPLETE=fish_source rehydrate | source; complete -C "$argv[1]"'


@pytest.fixture
def rehydrate(command, tmp_path, monkeypatch):
    """A shell finds the command by its name; returns how to make a run of an id."""
    script = tmp_path / "bin" / "rehydrate"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m rehydrate "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")

    def make(run_id: str) -> None:
        assert command("run", "-m", SMALL, "--run", run_id).code == 0

    return make


def shell(*words: str, **more: str) -> str:
    """What a shell, or a command, prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **more}).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("run_id", "typed", "kept"),
    [
        ("my run", "my", ""),
        ("my run", "my\\ r", ""),
        ("my run", "'my r", "'"),
        ("my run", '"my r', '"'),
        ("it's", "it", ""),
        ("it's", "'it", "'"),
        ('say "hi"', '"say', '"'),
        ("a*b", "a", ""),
        ("tick`touch made`$(touch made)", "tick", ""),
        ("tick`touch made`$(touch made)", '"tick', '"'),
        ("a;touch made", "a", ""),
        ("back\\slash", "back", ""),
        ("com,ma", "com", ""),
        ("col:on it", "col:", "col:"),
        ("é run", "é", ""),
    ],
)
def test_bash_reads_an_id_back_as_it_is(rehydrate, run_id, typed, kept):
    """What bash keeps of the word, and what it inserts behind that, are the id again, and no command of somebody."""
    rehydrate(run_id)
    reply = shell("bash", "--norc", "-c", _BASH, "bash", f"rehydrate resume --run {typed}").removesuffix("\n")
    closed = kept if kept in {"'", '"'} else ""
    assert shell("bash", "--norc", "-c", f"printf %s {kept}{reply}{closed}") == run_id
    assert not Path("made").exists()


def test_zsh_is_given_an_id_as_its_script_reads_it(rehydrate):
    """Backslashes and colons have a backslash before them; zsh quotes the rest itself."""
    rehydrate("a\\b:c d")
    told = {"_REHYDRATE_COMPLETE": "zsh_complete", "COMP_WORDS": "rehydrate resume --run a", "COMP_CWORD": "3"}
    assert shell("rehydrate", **told) == "plain\na\\\\b\\:c d\npayment, IDLE\n"


def test_a_server_that_does_not_answer_has_no_suggestions(rehydrate):
    """It does not hold the shell: a second is enough for one that answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/db"
        told = {"_REHYDRATE_COMPLETE": "zsh_complete", "COMP_WORDS": "rehydrate show a", "COMP_CWORD": "2"}
        environment = {**os.environ, **told, "REHYDRATE_STORE": store}
        done = subprocess.run(["rehydrate"], capture_output=True, text=True, check=True, env=environment, timeout=9)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("run_id", ["my run", "it's", "com,ma", "a;touch made"])
def test_fish_is_given_an_id_as_it_is(rehydrate, run_id):
    """Also one with the comma that stands between what is told of a completion; fish quotes it itself."""
    rehydrate(run_id)
    assert shell("fish", "--no-config", "-c", _FISH, f"rehydrate resume --run {run_id[0]}") == (
        f"{run_id}\tpayment, IDLE\n"
    )
