"""The prompt asks until an answer names a licence, and lets a person skip or stop."""

from collections.abc import Callable

from rehydrate.demo.claims import ClaimKind
from rehydrate.demo.licences import Evidence, Undecided
from rehydrate.demo.messages import LicenceQuestion
from rehydrate.demo.prompt import ask_person


def question(name: str, refused: str = "") -> LicenceQuestion:
    """Make the question about one distribution."""
    evidence = (Evidence(ClaimKind.FIELD, "see LICENSE", "nothing that is known"),)
    return LicenceQuestion(Undecided(name, name, "1.0", "env", f"env/{name}", ("no one says",), evidence), refused)


def typing(*lines: str) -> Callable[[str], str]:
    """Return a reader that gives these lines and then the end of input."""
    left = list(lines)

    def read(_prompt: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return read


def test_answers_come_back_by_request() -> None:
    """A skipped question has no answer."""
    shown: list[str] = []
    asked = [("r1", question("one")), ("r2", question("two")), ("r3", question("three"))]
    assert ask_person(asked, typing("MIT", "", "GPLv3+"), shown.append) == {"r1": "MIT", "r3": "GPLv3+"}
    assert "  no one says" in shown


def test_an_answer_that_is_not_understood_is_asked_for_again() -> None:
    """The person sees what would be taken."""
    shown: list[str] = []
    assert ask_person([("r1", question("one"))], typing("MTI", "MIT"), shown.append) == {"r1": "MIT"}
    assert any(line.startswith("  'MTI' is no licence that is known here") for line in shown)


def test_the_end_of_input_stops_asking_and_keeps_what_was_said() -> None:
    """Ctrl-D leaves the rest open."""
    asked = [("r1", question("one")), ("r2", question("two"))]
    assert ask_person(asked, typing("MIT"), lambda _: None) == {"r1": "MIT"}


def test_the_evidence_is_shown_on_request() -> None:
    """A question mark shows where each claim stands and what it can mean."""
    shown: list[str] = []
    ask_person([("r1", question("one"))], typing("?", ""), shown.append)
    assert "  licence field: see LICENSE" in shown
    assert "    means nothing that is known" in shown


def test_a_refused_answer_is_explained() -> None:
    """Where an earlier answer was not taken, the reason stands with the question."""
    shown: list[str] = []
    ask_person([("r1", question("one", refused="'x' is no licence"))], typing(), shown.append)
    assert "  'x' is no licence" in shown
