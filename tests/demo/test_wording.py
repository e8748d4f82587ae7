"""What people write about licences is understood where it is definite, and only there."""

import pytest

from rehydrate.demo.wording import classifier_options, phrase_options

GPL3 = {"GPL-3.0-only", "GPL-3.0-or-later"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIT", {"MIT"}),
        ("The MIT License (MIT)", {"MIT"}),
        ("MIT License", {"MIT"}),
        ("Expat (MIT/X11)", {"MIT"}),
        ("BSD", {"BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause"}),
        ("BSD 2-Clause License", {"BSD-2-Clause"}),
        ("3-Clause BSD", {"BSD-3-Clause"}),
        ("New BSD License", {"BSD-3-Clause"}),
        ("Apache 2.0", {"Apache-2.0"}),
        ("Apache License, Version 2.0", {"Apache-2.0"}),
        ("Apache Software License", {"Apache-1.0", "Apache-1.1", "Apache-2.0"}),
        ("ISC License (ISCL)", {"ISC"}),
        ("Mozilla Public License 2.0 (MPL 2.0)", {"MPL-2.0"}),
        ("PSF-2.0", {"PSF-2.0"}),
        ("Python Software Foundation License", {"PSF-2.0", "Python-2.0", "Python-2.0.1"}),
        ("GPLv3", GPL3),
        ("GPL-3.0", GPL3),
        ("GPL-3.0-only", {"GPL-3.0-only"}),
        ("GNU GPL v3 or later", {"GPL-3.0-or-later"}),
        ("GNU General Public License v3 (GPLv3)", GPL3),
        ("LGPLv2.1+", {"LGPL-2.1-or-later"}),
        ("GNU Lesser General Public License v3 or later (LGPLv3+)", {"LGPL-3.0-or-later"}),
        ("AGPLv3+", {"AGPL-3.0-or-later"}),
        ("Public Domain", {"LicenseRef-Public-Domain", "CC-PDDC", "CC0-1.0", "Unlicense"}),
        ("Proprietary", {"LicenseRef-Proprietary"}),
    ],
)
def test_usual_wordings_are_understood(text: str, expected: set[str]) -> None:
    """A wording gives all that it can mean: one identifier if it is exact, several if it is not."""
    assert phrase_options(text) == expected


@pytest.mark.parametrize(
    "text", ["", "Dual License", "see LICENSE", "free", "MIT but not for you", "GPLv9", "LGPL with exceptions"]
)
def test_other_wordings_mean_nothing(text: str) -> None:
    """Nothing is guessed from a part of a text."""
    assert phrase_options(text) is None


def test_a_bare_lgpl_leaves_every_version_open() -> None:
    """Without a version each published one is possible, with or without later ones."""
    options = phrase_options("LGPL")
    assert options is not None
    assert sorted(options) == [
        "LGPL-2.0-only",
        "LGPL-2.0-or-later",
        "LGPL-2.1-only",
        "LGPL-2.1-or-later",
        "LGPL-3.0-only",
        "LGPL-3.0-or-later",
    ]


@pytest.mark.parametrize(
    ("classifier", "expected"),
    [
        ("License :: OSI Approved :: MIT License", {"MIT"}),
        ("License :: OSI Approved :: GNU General Public License v2 or later (GPLv2+)", {"GPL-2.0-or-later"}),
        ("License :: Other/Proprietary License", {"LicenseRef-Proprietary"}),
        ("License :: OSI Approved", None),
        ("License :: Freeware", None),
    ],
)
def test_classifiers_are_mapped(classifier: str, expected: set[str] | None) -> None:
    """A classifier that says nothing definite means nothing."""
    assert classifier_options(classifier) == expected
