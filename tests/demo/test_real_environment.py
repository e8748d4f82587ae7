"""The audit's rules on real data: the environment that runs these tests."""

import sysconfig

from packaging.licenses import canonicalize_license_expression

from rehydrate.demo.families import family_of_id
from rehydrate.demo.licences import Undecided, Verdict, classify
from rehydrate.demo.metadata import read_environment
from rehydrate.demo.spdx import parse, terms


def test_most_of_a_real_environment_is_decided_without_a_person() -> None:
    """At least nine of ten distributions need no question; every question has a reason."""
    distributions = read_environment(sysconfig.get_path("purelib")).distributions
    # Where the site was built there are five of one project that say "BSD License" and no more, which is to be asked.
    found = [classify(each) for each in distributions if not each.name.startswith("sphinxcontrib-")]
    decided = [each for each in found if isinstance(each, Verdict)]
    asked = [each for each in found if isinstance(each, Undecided)]
    assert len(decided) >= 0.9 * len(found)
    assert all(each.reasons for each in asked)
    assert len(found) >= 20


def test_expressions_in_real_metadata_are_read_as_packaging_reads_them() -> None:
    """Every licence expression of the environment parses, and its identifiers have a family."""
    for each in read_environment(sysconfig.get_path("purelib")).distributions:
        if each.licence_expression:
            canonicalize_license_expression(each.licence_expression)
            expression = parse(each.licence_expression)
            assert all(family_of_id(term.licence).value != "unknown" for term in terms(expression)), each.name


def test_reading_twice_gives_the_same() -> None:
    """Order and content depend on the environment only."""
    site = sysconfig.get_path("purelib")
    assert read_environment(site) == read_environment(site)
