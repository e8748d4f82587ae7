"""Answers are read from JSON or from lines, and refused whole if one of them is wrong."""

from pathlib import Path

import pytest

from rehydrate.demo.answer_file import Answers, read_answers
from rehydrate.demo.environment import AuditInputError


@pytest.mark.parametrize(
    "text",
    [
        '{"Some.Thing": "MIT", "other==2.0": "Apache-2.0 OR MIT"}',
        "# found out by phone\n\nsome_thing = MIT\nother==2.0 = Apache-2.0 OR MIT\n",
        "some-thing = MIT\nOther  2.0 = Apache-2.0 OR MIT\n",
    ],
)
def test_all_forms_give_the_same(tmp_path: Path, text: str) -> None:
    """Names are compared as packaging tools do; a version, written as in the report or not, narrows an answer."""
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
        ('{"a": {"b": "MIT"}}', "the licence of 'a' must be a text"),
        ("[]", "must be one object"),
        ('[["a", "MIT"]]', "must be one object"),
        ('{"a"', "not valid JSON"),
        ("a = MIT\nb\n", "line 2 is not of the form"),
        ("a = GPLv2\n", "line 1: 'GPLv2' can mean"),
        ("a = MIT\nb = MIT\nA = ISC\n", "line 3: a second answer for 'A', after line 1; keep one"),
        ("a==1 = MIT\na 1 = MIT\n", "line 2: a second answer for 'a 1', after line 1; keep one"),
        ('{"a": "MIT", "a": "ISC"}', "entry 2, 'a': a second answer for 'a', after entry 1, 'a'; keep one"),
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


def test_the_more_exact_answer_counts() -> None:
    """A name with a version goes before the name alone; names with blanks and without a version are found, too."""
    answers = Answers({"a": "MIT", "a 2.0": "ISC", "Odd Name": "BSL-1.0", "bare -": "Zlib"})
    assert [answers.find("a", "1.0"), answers.find("A", "2.0")] == ["MIT", "ISC"]
    assert [answers.find("odd name", "3"), answers.find("bare", "")] == ["BSL-1.0", "Zlib"]


def test_answers_that_fit_nothing_are_named_as_they_were_written() -> None:
    """A wrong version and an unknown name fit nothing; what two names fit is used by both."""
    answers = Answers({"a": "MIT", "A 1.0": "MIT", "b 9": "MIT", "No.Body": "MIT"})
    assert answers.unused([("a", "1.0"), ("b", "1")]) == ("b 9", "No.Body")
