"""A person's answer is a licence that is known here, or it is refused with the choices."""

import pytest

from rehydrate.demo.answers import AnswerNotUnderstoodError, settle
from rehydrate.demo.families import Family


@pytest.mark.parametrize(
    ("text", "licence", "family"),
    [
        ("MIT", "MIT", Family.PERMISSIVE),
        ("  mit license ", "MIT", Family.PERMISSIVE),
        ("apache-2.0 or mit", "Apache-2.0 OR MIT", Family.PERMISSIVE),
        ("GPL-3.0-only", "GPL-3.0-only", Family.STRONG_COPYLEFT),
        ("GPLv3+", "GPL-3.0-or-later", Family.STRONG_COPYLEFT),
        ("LicenseRef-Acme", "LicenseRef-Acme", Family.UNKNOWN),
        ("proprietary", "(proprietary, not named)", Family.PROPRIETARY),
        ("Weak copyleft", "(weak copyleft, not named)", Family.WEAK_COPYLEFT),
        ("weak-copyleft", "(weak copyleft, not named)", Family.WEAK_COPYLEFT),
        ("unknown", "(unknown, not named)", Family.UNKNOWN),
    ],
)
def test_an_answer_settles_licence_and_family(text: str, licence: str, family: Family) -> None:
    """Expressions, usual wordings and names of families are all taken."""
    settled = settle(text)
    assert (settled.licence, settled.family) == (licence, family)


@pytest.mark.parametrize("text", ["", "   ", "yes", "MTI", "MIT OR", "MIT, probably", "x" * 1000])
def test_an_answer_that_names_no_licence_is_refused(text: str) -> None:
    """The refusal says what would be taken."""
    with pytest.raises(AnswerNotUnderstoodError, match="give an SPDX expression"):
        settle(text)


def test_a_vague_answer_is_refused_with_its_meanings() -> None:
    """A person is asked because the metadata is vague; an answer that is as vague does not settle it."""
    with pytest.raises(AnswerNotUnderstoodError, match=r"'GPLv2' can mean GPL-2\.0-only, GPL-2\.0-or-later; say which"):
        settle("GPLv2")
