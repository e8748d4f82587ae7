"""The command as people use it: answer, go on, check; wrong input is one line.

Runs in this process; `test_stopping` has what needs one of its own.
"""

import asyncio
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from rehydrate import Executor, SqliteCheckpointStorage, WorkflowBuilder, WorkflowContext, handler, response_handler
from rehydrate.demo.command import main
from rehydrate.demo.options import COMPLETE, FAILED, QUESTIONS_OPEN, WRONG_INPUT
from tests.demo.made import install


class Done(NamedTuple):
    """What one command gave."""

    code: object
    out: str
    err: str


Run = Callable[..., Done]


class Ask(Executor):
    """Asks what it is told to."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        ctx.request_info(text, response_type=str)

    @response_handler
    async def on_answer(self, text: str, answer: str, ctx: WorkflowContext) -> None:
        pass


@pytest.fixture(name="work")
def make_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the environment `env`: three clear distributions and one that says nothing."""
    site = tmp_path / "env" / "site-packages"
    for number in range(3):
        install(site, f"clear-{number}", "1.0", "License-Expression: MIT")
    install(site, "silent", "1.0")
    (tmp_path / "answers.txt").write_text("silent = BSD-2-Clause\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(name="run")
def make_run(work: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command to its end with nobody at the terminal."""

    def run(*words: str) -> Done:
        try:
            code: object = main(words)
        except SystemExit as ended:
            code = ended.code
        return Done(code, *capsys.readouterr())

    return run


def test_the_same_command_again_completes_what_it_began(run: Run) -> None:
    """Whoever types the same words twice gets one audit, not two."""
    assert run("env/site-packages").code == QUESTIONS_OPEN
    done = run("env/site-packages", "--answers", "answers.txt", "--check")
    assert done.code == COMPLETE, done
    assert "4 distributions, 3 decided from metadata (0 with a note), 1 by a person" in done.out


def test_a_finished_audit_can_be_read_again(run: Run) -> None:
    """The command without anything new runs nothing and prints the same report, and its answer counts as used."""
    first = run("env/site-packages", "--answers", "answers.txt")
    again = run("--answers", "answers.txt")
    assert (first.code, again.code) == (COMPLETE, COMPLETE)
    assert again.out.partition("Licence audit")[2] == first.out.partition("Licence audit")[2]
    assert "classified" not in again.out
    assert "not used" not in again.out


def test_a_check_that_finds_something_fails_the_command(run: Run) -> None:
    """What was uninstalled since is in the report and not on the disk."""
    assert run("env/site-packages", "--answers", "answers.txt", "--check").code == COMPLETE
    shutil.rmtree("env/site-packages/clear_2-1.0.dist-info")
    checked = run("--check")
    assert checked.code == FAILED
    assert "WRONG nothing is in the report that is not installed: not so for clear-2 1.0" in checked.out


def test_a_check_of_a_report_that_is_not_complete_is_refused_in_words(run: Run) -> None:
    """Nothing is checked in silence, and the advice keeps the wish."""
    paused = run("env/site-packages", "--check")
    assert paused.code == QUESTIONS_OPEN
    assert "Not checked, since the report is not complete.\nNot complete. Go on with: " in paused.out
    assert paused.out.endswith("-m rehydrate.demo.licence_audit --store sqlite:///audit.db --run audit --check\n")


def test_two_runs_in_one_store_do_not_mix(run: Run) -> None:
    """Each name is an audit of its own."""
    assert run("env/site-packages", "--run", "first", "--answers", "answers.txt").code == COMPLETE
    other = run("env/site-packages", "--run", "second")
    assert other.code == QUESTIONS_OPEN
    assert "3 decided from metadata" in other.out


def test_an_open_question_is_asked_once_however_often_the_run_is_taken_up(work: Path, run: Run) -> None:
    """A restart says that it is still open; it is counted once and has one line in the journal."""
    run("env/site-packages", "--journal", "journal")
    written = (work / "journal").read_text()
    again = run("--journal", "journal")
    assert "restored    the run (1 open, 0 in work)\nstill open  silent==1.0#" in again.out
    assert "(1 open, 0 in work)\nstatus " in again.out
    assert "question  " not in again.out
    assert (work / "journal").read_text() == written
    assert written.count('"asked"') == 1


def test_a_question_that_a_kill_kept_out_of_the_journal_is_noted_later(work: Path, run: Run) -> None:
    """It is committed before it is noted; the check of the whole audit still fits."""
    run("env/site-packages", "--journal", "journal")
    lines = (work / "journal").read_text().splitlines(keepends=True)
    (work / "journal").write_text("".join(line for line in lines if '"asked"' not in line))
    done = run("--journal", "journal", "--answers", "answers.txt", "--check")
    assert done.code == COMPLETE, done
    assert "ok    none of 1 questions was asked twice" in done.out
    assert "ok    who was asked about is who a person decided" in done.out


def test_answers_that_fit_nothing_are_named(work: Path, run: Run) -> None:
    """A name with its version, as the report writes it, is taken; a slip of the pen is not lost in silence."""
    (work / "answers.txt").write_text("silent 1.0 = MIT\nclear-1 = ISC\nnobody = MIT\n")
    done = run("env/site-packages", "--answers", "answers.txt")
    assert done.code == COMPLETE
    assert "Answers not used, since nothing of that name was asked about: clear-1, nobody\n" in done.out


def test_a_store_in_memory_gives_no_advice_that_cannot_work(run: Run) -> None:
    """Nothing can go on with what ends with its process."""
    paused = run("env/site-packages", "--store", "memory://")
    assert paused.code == QUESTIONS_OPEN
    assert "Go on with" not in paused.out
    assert "a store in memory ends with its process. Begin anew with --store and the name of a file" in paused.out


def test_a_damaged_store_is_not_to_be_tried_again(work: Path, run: Run) -> None:
    """The same command would fail in the same way."""
    run("env/site-packages")
    whole = (work / "audit.db").read_bytes()
    (work / "audit.db").write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    failed = run()
    assert failed.code == FAILED
    assert re.match(r"error: store .*audit\.db' is damaged: .* It was not used\. Restore the store", failed.err)
    assert "Go on with" not in failed.err
    assert failed.err.count("\n") == 1


def test_a_run_of_another_workflow_is_refused_by_name(work: Path, run: Run) -> None:
    """Its requests, whatever they look like, are not taken for questions of an audit."""

    async def begin() -> None:
        async with SqliteCheckpointStorage("audit.db") as storage:
            await WorkflowBuilder("other", Ask("ask"), checkpoint_storage=storage).build().run("why", run_id="audit")

    asyncio.run(begin())
    refused = run("env/site-packages")
    assert refused.code == WRONG_INPUT
    assert "run 'audit' in this store is one of workflow 'other' and no audit; name another run" in refused.err
    assert "Go on with" not in refused.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        (["."], "neither a Python environment nor"),
        (["wrong.txt"], "wrong.txt: not a requirements file"),
        (["--installed-in", "wrong.txt"], "wrong.txt: not a directory"),
        (["--answers", "wrong.json"], "'silent': 'MTI' is no licence"),
        (["--journal", "no/file"], "no/file: No such file"),
        (["--journal", "wrong.txt"], "wrong.txt: no journal of an audit"),
        (["--store", "mysql://me:secret@x"], "--store: 'mysql://***@x' is no URL of a store that is known here"),
        (["--store", "sqlite:///q.db?mode=ro"], "--store: 'sqlite:///q.db?mode=...' has the option 'mode'"),
        (["--store", ":memory:"], "':memory:' is not the path of a file"),
        (["--run", "a/b"], "run_id 'a/b' is not allowed"),
        (["--at-a-time", "0"], "'0' is not a number between 1 and 10000"),
        (["--look-up-seconds", "soon"], "'soon' is not a number between 0 and 60"),
        (["--demo", "env"], "--demo makes its own input"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_wrong_input_is_one_line_and_starts_nothing(work: Path, run: Run, words: list[str], complaint: str) -> None:
    """The exit code tells it from a failure, and no audit has begun."""
    (work / "wrong.txt").write_text("[section]\n")
    (work / "wrong.json").write_text('{"silent": "MTI"}')
    done = run(*words)
    assert done.code == WRONG_INPUT
    assert complaint in done.err
    assert done.err.count("\n") == 1
    assert "classified" not in done.out
    assert not (work / "q.db").exists()
