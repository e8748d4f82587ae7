"""Licence texts are recognised by a few phrases, whatever their layout."""

import pytest

from rehydrate.demo.fingerprints import recognise
from tests.demo.made import BSD2_TEXT, BSD3_TEXT, MIT_TEXT

GNU_NOTICE = "under the terms of the GNU {} Public License as published by the Free Software Foundation"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MIT_TEXT, ["MIT"]),
        (BSD2_TEXT, ["BSD-2-Clause"]),
        (BSD3_TEXT, ["BSD-3-Clause"]),
        ("Apache License\n   Version 2.0, January 2004", ["Apache-2.0"]),
        ('Licensed under the Apache License, Version 2.0 (the "License")', ["Apache-2.0"]),
        ("Mozilla Public License Version 2.0\n ... Covered Software ...", ["MPL-2.0"]),
        ("GNU GENERAL PUBLIC LICENSE\n Version 2, June 1991", ["GPL-2.0-only", "GPL-2.0-or-later"]),
        ("GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007", ["GPL-3.0-only", "GPL-3.0-or-later"]),
        ("GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1, February 1999", ["LGPL-2.1-only", "LGPL-2.1-or-later"]),
        ("GNU LESSER GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", ["LGPL-3.0-only", "LGPL-3.0-or-later"]),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3, 19 November 2007", ["AGPL-3.0-only", "AGPL-3.0-or-later"]),
        (
            "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is\n"
            "hereby granted, provided that the above copyright notice and this permission notice appear in all copies.",
            ["ISC"],
        ),
        (
            "Permission to use, copy, modify, and/or distribute this software for any\n"
            "purpose with or without fee is hereby granted.",
            ["0BSD"],
        ),
        (
            "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n... the Individual (Licensee) ...",
            ["PSF-2.0", "Python-2.0", "Python-2.0.1"],
        ),
        ("This is free and unencumbered software released into the public domain.", ["Unlicense"]),
        (
            "The origin of this software must not be misrepresented;\n"
            "Altered source versions must be plainly marked as such, and",
            ["Zlib"],
        ),
    ],
)
def test_a_text_of_one_licence_is_recognised(text: str, expected: list[str]) -> None:
    """Each text gives one licence, with the identifiers that the text cannot tell apart."""
    assert [sorted(options) for options in recognise(text)] == [expected]


def test_layout_does_not_matter() -> None:
    """Case, line breaks, quotes and comment marks make no difference."""
    text = "\n".join(f"# {line.upper()}" for line in MIT_TEXT.replace(" ", "   ").splitlines())
    assert recognise(text) == ({"MIT"},)


def test_several_licences_in_one_file_are_all_found() -> None:
    """A file that holds the two-clause text beside the three-clause one is not taken for the latter alone."""
    found = [sorted(options) for options in recognise(MIT_TEXT + BSD3_TEXT + BSD2_TEXT)]
    assert found == [["MIT"], ["BSD-3-Clause"], ["BSD-2-Clause"]]


def test_the_text_that_a_licence_builds_on_does_not_count_as_a_second_one() -> None:
    """LGPL-3.0 is printed behind GPL-3.0, whose text it takes over."""
    text = (
        "GNU LESSER GENERAL PUBLIC LICENSE Version 3, 29 June 2007. GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007."
    )
    assert recognise(text) == ({"LGPL-3.0-only", "LGPL-3.0-or-later"},)


def test_a_short_notice_does_not_blur_the_full_text() -> None:
    """The full text ends with a sample notice without a version; the version of the text stands."""
    full = "GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007 ... " + GNU_NOTICE.format("General")
    assert recognise(full) == ({"GPL-3.0-only", "GPL-3.0-or-later"},)
    (notice_alone,) = recognise(GNU_NOTICE.format("Lesser General"))
    assert {option.split("-")[1] for option in notice_alone} == {"2.0", "2.1", "3.0"}


def test_an_unknown_text_is_nothing() -> None:
    """A text of somebody's own is not taken for anything."""
    assert recognise("You may use this on Tuesdays.") == ()
