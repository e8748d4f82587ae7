"""Answers are read from JSON or from lines, and refused whole if one of them is wrong."""

from pathlib import Path

import pytest

from rehydrate.demo.answer_file import read_answers
from rehydrate.demo.environment import AuditInputError


@pytest.mark.parametrize(
    "text",
    [
        '{"Some.Thing": "MIT", "other==2.0": "Apache-2.0 OR MIT"}',
        "# found out by phone\n\nsome_thing = MIT\nother==2.0 = Apache-2.0 OR MIT\n",
    ],
)
def test_both_forms_give_the_same(tmp_path: Path, text: str) -> None:
    """Names are compared as packaging tools do; a version narrows an answer."""
    path = tmp_path / "answers"
    path.write_text(text)
    answers = read_answers(path)
    assert answers.find("some-thing", "1.0") == "MIT"
    assert answers.find("other", "2.0") == "Apache-2.0 OR MIT"
    assert answers.find("other", "1.0") is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"a": "MTI"}', "'a': 'MTI' is no licence"),
        ('{"a": 1}', "the licence of 'a' must be a text"),
        ("[]", "must be one object"),
        ('{"a"', "not valid JSON"),
        ("a = MIT\nb\n", "line 2 is not of the form"),
        ("a = GPLv2\n", "line 1: 'GPLv2' can mean"),
    ],
)
def test_a_wrong_answer_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    """The error says which file and which line."""
    path = tmp_path / "answers"
    path.write_text(text)
    with pytest.raises(AuditInputError, match=f"answers: .*{complaint}"):
        read_answers(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """One line, no traceback."""
    with pytest.raises(AuditInputError, match="absent: No such file"):
        read_answers(tmp_path / "absent")
