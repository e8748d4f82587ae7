"""The prompt asks until an answer names a licence, and lets a person skip or stop."""

from collections.abc import Callable

import pytest

from rehydrate.demo.claims import ClaimKind
from rehydrate.demo.licences import Evidence, Undecided
from rehydrate.demo.messages import LicenceQuestion
from rehydrate.demo.prompt import Prompt


def question(name: str, refused: str = "") -> LicenceQuestion:
    """Make the question about one distribution."""
    evidence = (Evidence(ClaimKind.FIELD, "see LICENSE", "nothing that is known"),)
    return LicenceQuestion(Undecided(name, name, "1.0", "env", f"env/{name}", ("no one says",), evidence), refused)


def typing(*lines: str, end: type[BaseException] = EOFError) -> Callable[[str], str]:
    """Return a reader that gives these lines and then ends."""
    left = list(lines)

    def read(_prompt: str) -> str:
        if not left:
            raise end
        return left.pop(0)

    return read


ONE, TWO, THREE = (("r1", question("one")), ("r2", question("two")), ("r3", question("three")))


def test_answers_come_back_by_request() -> None:
    """A skipped question has no answer."""
    shown: list[str] = []
    prompt = Prompt(typing("MIT", "", "GPLv3+"), shown.append)
    assert prompt.ask([ONE, TWO, THREE]) == {"r1": "MIT", "r3": "GPLv3+"}
    assert "  no one says" in shown


def test_an_answer_that_is_not_understood_is_asked_for_again() -> None:
    """The person sees what would be taken."""
    shown: list[str] = []
    assert Prompt(typing("MTI", "MIT"), shown.append).ask([ONE]) == {"r1": "MIT"}
    assert any(line.startswith("  'MTI' is no licence that is known here") for line in shown)


@pytest.mark.parametrize(("end", "interrupted"), [(EOFError, False), (OSError, False), (KeyboardInterrupt, True)])
def test_whatever_stops_the_asking_keeps_what_was_said(end: type[BaseException], *, interrupted: bool) -> None:
    """Ctrl-D, a lost terminal and Ctrl-C leave the rest open, and nothing is asked any more."""
    prompt = Prompt(typing("MIT", end=end), lambda _: None)
    assert prompt.ask([ONE, TWO]) == {"r1": "MIT"}
    assert prompt.interrupted is interrupted
    assert prompt.ask([TWO, THREE]) == {}


def test_a_skipped_question_is_not_asked_again_at_once() -> None:
    """Only what is new is asked about after a call."""
    shown: list[str] = []
    prompt = Prompt(typing("", "MIT", "ISC"), shown.append)
    assert prompt.ask([ONE, TWO]) == {"r2": "MIT"}
    assert prompt.ask([ONE, THREE]) == {"r3": "ISC"}
    assert [line for line in shown if line.startswith("one ")] == ["one 1.0 (env/one)"]


def test_the_evidence_is_shown_on_request() -> None:
    """A question mark shows where each claim stands and what it can mean."""
    shown: list[str] = []
    Prompt(typing("?", ""), shown.append).ask([ONE])
    assert "  licence field: see LICENSE" in shown
    assert "    means nothing that is known" in shown


def test_a_refused_answer_is_explained() -> None:
    """Where an earlier answer was not taken, the reason stands with the question."""
    shown: list[str] = []
    Prompt(typing(), shown.append).ask([("r1", question("one", refused="'x' is no licence"))])
    assert "  'x' is no licence" in shown
