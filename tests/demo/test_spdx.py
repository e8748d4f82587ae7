"""Licence expressions are read as SPDX defines them, or refused."""

import pytest
from packaging.licenses import canonicalize_license_expression

from rehydrate.demo.families import Family
from rehydrate.demo.spdx import AllOf, AnyOf, ExpressionError, Term, family, parse, unknown_names


def test_and_binds_closer_than_or() -> None:
    """`A OR B AND C` is a choice between A and both of the others."""
    expected = AnyOf((Term("MIT"), AllOf((Term("Apache-2.0"), Term("ISC")))))
    assert parse("MIT OR Apache-2.0 AND ISC") == expected


def test_parentheses_change_the_grouping() -> None:
    """The text that comes back keeps the parentheses that are needed, and no others."""
    assert str(parse("(MIT or (Apache-2.0)) and ISC")) == "(MIT OR Apache-2.0) AND ISC"
    assert str(parse("((MIT OR ISC)) OR Zlib")) == "MIT OR ISC OR Zlib"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mit", "MIT"),
        ("apache-2.0 or bsd-3-clause", "Apache-2.0 OR BSD-3-Clause"),
        ("GPL-2.0+", "GPL-2.0-or-later"),
        ("GPL-3.0", "GPL-3.0-only"),
        ("MPL-1.1+", "MPL-1.1+"),
        ("gpl-2.0-only with classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("LicenseRef-Our-Own", "LicenseRef-Our-Own"),
        ("DocumentRef-a:LicenseRef-b AND MIT", "DocumentRef-a:LicenseRef-b AND MIT"),
    ],
)
def test_identifiers_come_out_in_their_canonical_spelling(text: str, expected: str) -> None:
    """Case does not matter, and short forms that the list has withdrawn are replaced."""
    assert str(parse(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "MIT OR",
        "OR MIT",
        "MIT Apache-2.0",
        "(MIT",
        "MIT)",
        "MIT WITH",
        "MIT +",
        "WITH MIT",
        "MIT AND AND ISC",
        "MIT, ISC",
        "BSD 3-Clause License",
        "a:b",
        "(" * 100 + "MIT" + ")" * 100,
        "MIT OR " * 400 + "MIT",
    ],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    """A malformed, endless or too deeply nested text is an error and nothing else."""
    with pytest.raises(ExpressionError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "MIT",
        "MIT OR Apache-2.0",
        "(MIT OR Apache-2.0) AND BSD-3-Clause",
        "mit and (isc or zlib) and 0bsd",
        "GPL-3.0-or-later WITH GCC-exception-3.1",
        "Apache-2.0 WITH LLVM-exception OR NCSA",
        "LicenseRef-Proprietary",
    ],
)
def test_reading_agrees_with_packaging(text: str) -> None:
    """The reference implementation accepts the same texts and gives the same names."""
    reference = canonicalize_license_expression(text)
    assert str(parse(text)) == str(parse(reference))
    assert str(parse(text)).replace("(", "").replace(")", "") == reference.replace("(", "").replace(")", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIT", Family.PERMISSIVE),
        ("Unlicense", Family.PUBLIC_DOMAIN),
        ("MIT OR GPL-3.0-only", Family.PERMISSIVE),
        ("MIT AND GPL-3.0-only", Family.STRONG_COPYLEFT),
        ("MPL-2.0 AND (MIT OR AGPL-3.0-only)", Family.WEAK_COPYLEFT),
        ("GPL-2.0-only WITH Classpath-exception-2.0", Family.WEAK_COPYLEFT),
        ("GPL-2.0-only WITH Font-exception-2.0", Family.STRONG_COPYLEFT),
        ("LicenseRef-Proprietary", Family.PROPRIETARY),
        ("LicenseRef-Other", Family.UNKNOWN),
    ],
)
def test_the_family_of_the_whole_follows_the_operators(text: str, expected: Family) -> None:
    """A choice counts as its least demanding part, a sum as its most demanding one."""
    assert family(parse(text)) is expected


def test_names_that_the_table_does_not_have_are_listed() -> None:
    """Licences and exceptions without a known family come out once each, in order."""
    found = unknown_names(parse("Foo-1.0 OR MIT OR foo-2 OR GPL-2.0-only WITH Bar-exception OR Foo-1.0"))
    assert found == ("Foo-1.0", "foo-2", "Bar-exception")
