"""The verdict: what agrees decides, everything else is asked."""

import pytest

from rehydrate.demo.claims import ClaimKind
from rehydrate.demo.environment import Distribution
from rehydrate.demo.families import Family
from rehydrate.demo.licences import DecidedBy, Undecided, Verdict, classify
from tests.demo.made import BSD3_TEXT, MIT_TEXT, distribution

MIT_FILE = ("LICENSE", MIT_TEXT)
BSD_FILE = ("LICENSE", BSD3_TEXT)
GPL_FILE = ("COPYING", "GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007")
APACHE_FILE = ("LICENSE.apache", "Apache License Version 2.0, January 2004")


def decided(given: Distribution) -> Verdict:
    """Classify what must be decided."""
    verdict = classify(given)
    assert isinstance(verdict, Verdict), verdict
    return verdict


def reasons(given: Distribution) -> tuple[str, ...]:
    """Classify what must be asked and return why."""
    verdict = classify(given)
    assert isinstance(verdict, Undecided), verdict
    return verdict.reasons


@pytest.mark.parametrize(
    ("given", "licence", "family"),
    [
        (distribution(expression="MIT"), "MIT", Family.PERMISSIVE),
        (distribution(expression="apache-2.0 or mit", texts=(MIT_FILE,)), "Apache-2.0 OR MIT", Family.PERMISSIVE),
        (distribution(expression="MPL-2.0"), "MPL-2.0", Family.WEAK_COPYLEFT),
        (distribution(field="MIT", classifiers=("MIT License",)), "MIT", Family.PERMISSIVE),
        (distribution(field="BSD", classifiers=("BSD License",), texts=(BSD_FILE,)), "BSD-3-Clause", Family.PERMISSIVE),
        (distribution(field="Apache 2.0", classifiers=("Apache Software License",)), "Apache-2.0", Family.PERMISSIVE),
        (distribution(field="GPL-3.0-or-later", texts=(GPL_FILE,)), "GPL-3.0-or-later", Family.STRONG_COPYLEFT),
        (distribution(field=BSD3_TEXT, classifiers=("BSD License",)), "BSD-3-Clause", Family.PERMISSIVE),
    ],
)
def test_agreement_decides(given: Distribution, licence: str, family: Family) -> None:
    """Sources that say the same, each as exactly as it can, give one exact licence without a note."""
    verdict = decided(given)
    assert (verdict.licence, verdict.family, verdict.flags) == (licence, family, ())
    assert verdict.decided_by is DecidedBy.METADATA


@pytest.mark.parametrize(
    ("field", "classifier", "licence", "family"),
    [
        ("BSD", "BSD License", "BSD-*", Family.PERMISSIVE),
        ("LGPL", "GNU Library or Lesser General Public License (LGPL)", "LGPL-*", Family.WEAK_COPYLEFT),
        ("GPLv2", "GNU General Public License (GPL)", "GPL-2.0-*", Family.STRONG_COPYLEFT),
    ],
)
def test_a_vague_wording_decides_the_family_and_says_so(
    field: str, classifier: str, licence: str, family: Family
) -> None:
    """Where only the family is sure, the row carries a note."""
    verdict = decided(distribution(field=field, classifiers=(classifier,)))
    assert (verdict.licence, verdict.family) == (licence, family)
    assert verdict.flags == (f"{licence} leaves open which of its forms is meant",)


def test_a_licence_file_alone_decides_with_a_note() -> None:
    """One known text and no other word is enough, and the row says that there was nothing else."""
    verdict = decided(distribution(texts=(MIT_FILE,)))
    assert (verdict.licence, verdict.flags) == ("MIT", ("only a licence file says so",))


def test_free_text_that_is_not_understood_is_a_note() -> None:
    """What agrees decides, but words such as `with exceptions` are shown."""
    lgpl = ("COPYING", "GNU LESSER GENERAL PUBLIC LICENSE Version 3, 29 June 2007")
    name = "GNU Lesser General Public License v3 (LGPLv3)"
    verdict = decided(distribution(field="LGPL with exceptions", classifiers=(name,), texts=(lgpl,)))
    assert verdict.flags == (
        "LGPL-3.0-* leaves open which of its forms is meant",
        "the licence field says 'LGPL with exceptions', which is not understood",
    )


def test_a_further_text_that_asks_for_no_more_is_a_note() -> None:
    """Bundled code under another permissive licence does not hold up the verdict."""
    verdict = decided(distribution(expression="MIT", texts=(MIT_FILE, APACHE_FILE)))
    assert (verdict.licence, verdict.flags) == ("MIT", ("a licence file also holds Apache-2.0",))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (distribution(), "nothing in the metadata says what the licence is"),
        (distribution(field="see website"), "nothing in the metadata says what the licence is"),
        (
            distribution(classifiers=("MIT License",)),
            "the classifiers say 'MIT License', and nothing confirms it",
        ),
        (
            distribution(field="MIT", classifiers=("BSD License",)),
            "the licence field says 'MIT', but the classifiers say 'BSD License'",
        ),
        (
            distribution(expression="MIT", texts=(BSD_FILE,)),
            "the declared licence is MIT, but the licence file is that of BSD-3-Clause",
        ),
        (
            distribution(expression="MIT", texts=(MIT_FILE, GPL_FILE)),
            "a licence file also holds GPL-3.0-*, which asks for more than what is declared",
        ),
        (
            distribution(expression="MIT OR"),
            "the licence expression 'MIT OR' is not valid: a licence is missing at the end",
        ),
        (
            distribution(expression="LicenseRef-Ours"),
            "the licence expression names LicenseRef-Ours, of which nothing is known",
        ),
        (
            distribution(expression="MIT", texts=(("LICENSE", "Ask my mother."),)),
            "LICENSE is a licence text that is not known",
        ),
        (
            distribution(
                field="MIT/GPL", classifiers=("MIT License", "GNU General Public License (GPL)"), texts=(MIT_FILE,)
            ),
            "MIT, GPL-* are declared, and nothing says whether one or all of them apply",
        ),
        (
            distribution(texts=(MIT_FILE, BSD_FILE)),
            "only licence files speak, and they hold several licences: MIT, BSD-3-Clause",
        ),
    ],
)
def test_what_does_not_agree_is_asked_with_its_reason(given: Distribution, expected: str) -> None:
    """A contradiction, a lone claim, an unknown text or silence goes to a person."""
    assert reasons(given) == (expected,)


def test_an_expression_may_name_more_than_the_classifiers() -> None:
    """Classifiers cannot say how licences are joined; the expression stands."""
    verdict = decided(distribution(expression="MIT OR Apache-2.0", classifiers=("MIT License",)))
    assert verdict.licence == "MIT OR Apache-2.0"


def test_two_permissive_licences_without_a_word_between_them_are_noted() -> None:
    """The family is sure; whether one or both apply is not."""
    verdict = decided(distribution(classifiers=("MIT License", "ISC License (ISCL)"), texts=(MIT_FILE,)))
    assert (verdict.licence, verdict.family) == ("MIT, ISC", Family.PERMISSIVE)
    assert verdict.flags == ("nothing says whether one or all of MIT, ISC apply",)


def test_a_verdict_records_what_every_source_said() -> None:
    """The evidence names source, words and meaning, in a fixed order."""
    verdict = decided(distribution(field="BSD", classifiers=("BSD License",), texts=(BSD_FILE,)))
    assert [(each.kind, each.means) for each in verdict.evidence] == [
        (ClaimKind.FIELD, "BSD-*"),
        (ClaimKind.CLASSIFIERS, "BSD-*"),
        (ClaimKind.TEXT, "BSD-3-Clause"),
    ]
    assert verdict.evidence[0].said == "BSD"


def test_the_key_changes_with_the_evidence_only() -> None:
    """The same metadata in another place is the same distribution; other metadata is not."""
    here = distribution(expression="MIT", name="Some.Thing")
    there = Distribution("some_thing", "1.0", "MIT", None, (), (), "elsewhere", "elsewhere/some_thing.dist-info")
    assert here.key == there.key
    assert here.key != distribution(expression="ISC", name="Some.Thing").key
    assert here.key.startswith("some-thing==1.0#")
