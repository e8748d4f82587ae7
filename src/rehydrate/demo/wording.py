"""What people write about a licence: trove classifiers and the free text of the `License` field.

Gives the set of SPDX identifiers that a wording can mean. A wording that is not known means nothing here; nothing is
guessed from parts of words.
"""

from __future__ import annotations

import re
from typing import Final

from rehydrate.demo.families import GNU_VERSIONS, canonical_id

__all__ = ["Options", "classifier_options", "phrase_options"]

Options = frozenset[str]
"""Identifiers that one wording can mean; exactly one of them is meant."""


def _any(text: str) -> Options:
    return frozenset(text.split())


_BSD: Final = _any("BSD-1-Clause BSD-2-Clause BSD-3-Clause BSD-4-Clause")
_APACHE: Final = _any("Apache-1.0 Apache-1.1 Apache-2.0")
_MPL: Final = _any("MPL-1.0 MPL-1.1 MPL-2.0")
_EPL: Final = _any("EPL-1.0 EPL-2.0")
_PSF: Final = _any("PSF-2.0 Python-2.0 Python-2.0.1")
_ZPL: Final = _any("ZPL-2.0 ZPL-2.1")
_PUBLIC: Final = _any("LicenseRef-Public-Domain CC-PDDC CC0-1.0 Unlicense")


def _gnu(name: str, versions: str, ends: str = "only or-later") -> Options:
    return frozenset(f"{name}-{version}-{end}" for version in versions.split() for end in ends.split())


_CLASSIFIERS: Final[dict[str, Options]] = {
    "Academic Free License (AFL)": _any("AFL-2.0 AFL-2.1 AFL-3.0"),
    "Apache Software License": _APACHE,
    "Apple Public Source License": _any("APSL-2.0"),
    "Artistic License": _any("Artistic-1.0 Artistic-1.0-Perl Artistic-2.0"),
    "Blue Oak Model License (BlueOak-1.0.0)": _any("BlueOak-1.0.0"),
    "BSD License": _BSD,
    "Boost Software License 1.0 (BSL-1.0)": _any("BSL-1.0"),
    "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication": _any("CC0-1.0"),
    "CEA CNRS Inria Logiciel Libre License, version 2.1 (CeCILL-2.1)": _any("CECILL-2.1"),
    "CeCILL-C Free Software License Agreement (CECILL-C)": _any("CECILL-C"),
    "CMU License (MIT-CMU)": _any("MIT-CMU"),
    "Common Development and Distribution License 1.0 (CDDL-1.0)": _any("CDDL-1.0"),
    "Common Public License": _any("CPL-1.0"),
    "Eclipse Public License 1.0 (EPL-1.0)": _any("EPL-1.0"),
    "Eclipse Public License 2.0 (EPL-2.0)": _any("EPL-2.0"),
    "Educational Community License, Version 2.0 (ECL-2.0)": _any("ECL-2.0"),
    "European Union Public Licence 1.0 (EUPL 1.0)": _any("EUPL-1.0"),
    "European Union Public Licence 1.1 (EUPL 1.1)": _any("EUPL-1.1"),
    "European Union Public Licence 1.2 (EUPL 1.2)": _any("EUPL-1.2"),
    "GNU Affero General Public License v3": _gnu("AGPL", "3.0"),
    "GNU Affero General Public License v3 or later (AGPLv3+)": _gnu("AGPL", "3.0", "or-later"),
    "GNU General Public License (GPL)": _gnu("GPL", "1.0 2.0 3.0"),
    "GNU General Public License v2 (GPLv2)": _gnu("GPL", "2.0"),
    "GNU General Public License v2 or later (GPLv2+)": _gnu("GPL", "2.0", "or-later"),
    "GNU General Public License v3 (GPLv3)": _gnu("GPL", "3.0"),
    "GNU General Public License v3 or later (GPLv3+)": _gnu("GPL", "3.0", "or-later"),
    "GNU Lesser General Public License v2 (LGPLv2)": _gnu("LGPL", "2.0 2.1"),
    "GNU Lesser General Public License v2 or later (LGPLv2+)": _gnu("LGPL", "2.0 2.1", "or-later"),
    "GNU Lesser General Public License v3 (LGPLv3)": _gnu("LGPL", "3.0"),
    "GNU Lesser General Public License v3 or later (LGPLv3+)": _gnu("LGPL", "3.0", "or-later"),
    "GNU Library or Lesser General Public License (LGPL)": _gnu("LGPL", "2.0 2.1 3.0"),
    "Historical Permission Notice and Disclaimer (HPND)": _any("HPND MIT-CMU"),
    "IBM Public License": _any("IPL-1.0"),
    "ISC License (ISCL)": _any("ISC"),
    "MIT License": _any("MIT"),
    "MIT No Attribution License (MIT-0)": _any("MIT-0"),
    "Mozilla Public License 1.0 (MPL)": _any("MPL-1.0"),
    "Mozilla Public License 1.1 (MPL 1.1)": _any("MPL-1.1"),
    "Mozilla Public License 2.0 (MPL 2.0)": _any("MPL-2.0"),
    "Mulan Permissive Software License v2 (MulanPSL-2.0)": _any("MulanPSL-2.0"),
    "Open Software License 3.0 (OSL-3.0)": _any("OSL-3.0"),
    "Other/Proprietary License": _any("LicenseRef-Proprietary"),
    "PostgreSQL License": _any("PostgreSQL"),
    "Public Domain": _PUBLIC,
    "Python License (CNRI Python License)": _any("CNRI-Python"),
    "Python Software Foundation License": _PSF,
    "Qt Public License (QPL)": _any("QPL-1.0"),
    "SIL Open Font License 1.1 (OFL-1.1)": _any("OFL-1.1"),
    "Sleepycat License": _any("Sleepycat"),
    "The Unlicense (Unlicense)": _any("Unlicense"),
    "Universal Permissive License (UPL)": _any("UPL-1.0"),
    "University of Illinois/NCSA Open Source License": _any("NCSA"),
    "W3C License": _any("W3C"),
    "Zero-Clause BSD (0BSD)": _any("0BSD"),
    "Zope Public License": _ZPL,
    "zlib/libpng License": _any("Zlib"),
}

_PHRASES: Final[dict[Options, str]] = {
    _any("MIT"): "mit|expat|mit expat|mit x11",
    _any("MIT-0"): "mit 0|mit no attribution",
    _any("MIT-CMU HPND"): "hpnd|historical permission notice and disclaimer",
    _BSD: "bsd|bsd style|bsd like",
    _any("BSD-2-Clause"): "bsd 2 clause|2 clause bsd|two clause bsd|bsd 2|simplified bsd|bsd simplified|freebsd",
    _any("BSD-3-Clause"): "bsd 3 clause|3 clause bsd|three clause bsd|bsd 3|new bsd|bsd new|modified bsd|revised bsd"
    "|new bsd 3 clause|bsd 3 clause new or revised|3 clause new bsd",
    _any("0BSD"): "0bsd|zero clause bsd",
    _APACHE: "apache|apl|asl|apache foundation",
    _any("Apache-2.0"): "apache 2.0|apache 2|apache2|apache2.0|asl 2.0|asl 2|apl 2.0|al2",
    _any("ISC"): "isc|iscl",
    _MPL: "mpl|mozilla public",
    _any("MPL-2.0"): "mpl 2.0|mpl 2|mpl2|mozilla public 2.0",
    _any("MPL-1.1"): "mpl 1.1|mozilla public 1.1",
    _EPL: "epl|eclipse public",
    _any("EPL-1.0"): "epl 1.0|eclipse public 1.0",
    _any("EPL-2.0"): "epl 2.0|epl 2|eclipse public 2.0",
    _PSF: "psf|psfl|python foundation|python psf|python",
    _any("PSF-2.0"): "psf 2.0|psf 2|python foundation 2",
    _ZPL: "zpl|zope public",
    _any("ZPL-2.1"): "zpl 2.1|zope public 2.1",
    _any("Zlib"): "zlib|zlib libpng",
    _any("Unlicense"): "unlicense",
    _any("CC0-1.0"): "cc0|cc0 1.0|cc0 1.0 universal|creative commons zero",
    _PUBLIC: "public domain",
    _any("BSL-1.0"): "boost|boost 1.0|bsl 1.0",
    _any("WTFPL"): "wtfpl",
    _any("PostgreSQL"): "postgresql",
    _any("NCSA"): "ncsa|university of illinois ncsa",
    _any("OFL-1.1"): "ofl|ofl 1.1|sil ofl 1.1|sil font 1.1",
    _any("EUPL-1.2"): "eupl 1.2",
    _any("LicenseRef-Proprietary"): "proprietary|commercial|all rights reserved|closed source|other proprietary",
}
_BY_PHRASE: Final = {phrase: options for options, phrases in _PHRASES.items() for phrase in phrases.split("|")}

_NOISE: Final = frozenset(
    "a an the license licence licensed licenses under terms of osi approved software version v ver open source".split()
)
_GNU_LONG: Final = (
    (re.compile(r"\b(?:lesser|library)(?: or lesser)? general public\b"), "lgpl"),
    (re.compile(r"\baffero general public\b"), "agpl"),
    (re.compile(r"\bgeneral public\b"), "gpl"),
)
_GNU: Final = re.compile(
    r"^(?:gnu )?(?P<name>lgpl|agpl|gpl) ?(?P<version>[123](?:\.[01])?)? ?(?P<end>\+|or later|or newer|or above|only)?$"
)
_GNU_VERSIONS: Final = {name: " ".join(versions) for name, versions in GNU_VERSIONS.items()}


def classifier_options(classifier: str) -> Options | None:
    """Return what a licence classifier can mean; None where it says nothing definite."""
    return _CLASSIFIERS.get(classifier.rpartition(" :: ")[2].strip())


def phrase_options(text: str) -> Options | None:
    """Return what a short text such as `BSD` or `Apache License, Version 2.0` can mean; None if it is not known."""
    if (known := _exact_id(text)) or (known := _plain_options(text)):
        return known
    # A long name is often followed by its short form: "GNU General Public License v3 (GPLv3)".
    outer, _, inner = text.strip().removesuffix(")").rpartition("(")
    long_form, short_form = _plain_options(outer), _plain_options(inner)
    if long_form is None or short_form is None:
        return None
    return long_form & short_form or None


def _exact_id(text: str) -> Options | None:
    known = canonical_id(text.strip())
    # A withdrawn short form such as "GPL-3.0" is often written by people who allow later versions.
    return frozenset({known}) if known and known.lower() == text.strip().lower() else None


def _plain_options(text: str) -> Options | None:
    phrase = _normalised(text)
    return _BY_PHRASE.get(phrase) or _gnu_options(phrase)


def _normalised(text: str) -> str:
    lowered = re.sub(r"\b(v|version|ver\.?)\s*(?=\d)", " ", text.lower())
    lowered = re.sub(r"(?<=gpl|mpl|epl|psf)v(?=\d)", " ", lowered)
    words = re.sub(r"[^a-z0-9+.]+", " ", lowered).split()
    kept = (word.strip(".") for word in words if word.strip(".") not in _NOISE)
    return " ".join(word for word in kept if word)


def _gnu_options(phrase: str) -> Options | None:
    for pattern, short in _GNU_LONG:
        phrase = pattern.sub(short, phrase)
    match = _GNU.fullmatch(phrase)
    if match is None:
        return None
    name = match["name"].upper()
    versions = _GNU_VERSIONS[name]
    if match["version"]:
        versions = match["version"] if "." in match["version"] else f"{match['version']}.0"
    if versions == "2.0" and name == "LGPL" and match["version"] == "2":
        versions = "2.0 2.1"
    ends = {None: "only or-later", "only": "only"}.get(match["end"], "or-later")
    options = frozenset(option for option in _gnu(name, versions, ends) if canonical_id(option))
    return options or None
