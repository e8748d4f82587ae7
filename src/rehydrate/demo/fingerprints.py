"""Recognition of licence texts by a few distinctive phrases each.

Reads text only; it does not compare whole texts and draws no conclusion about a distribution. A text that holds several
licences yields several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from rehydrate.demo.wording import Options, phrase_options

__all__ = ["recognise"]


@dataclass(frozen=True)
class Fingerprint:
    """Phrases that give a licence away: every one of some group, and none of `without`."""

    options: Options
    groups: tuple[tuple[str, ...], ...]
    without: tuple[str, ...] = ()
    holds: Options = field(default_factory=frozenset[str])
    """Licences whose text is a part of this one's."""


def _print(options: str, *groups: str, without: str = "", holds: str = "") -> Fingerprint:
    """Make a fingerprint of plain strings: identifiers are parted by spaces, phrases by `|`."""
    return Fingerprint(
        frozenset(options.split()),
        tuple(tuple(group.split("|")) for group in groups),
        tuple(without.split("|")) if without else (),
        frozenset(holds.split()),
    )


_BSD_FORM: Final = "redistribution and use in source and binary forms|redistributions in binary form must reproduce"
_BSD_NAMES: Final = "used to endorse or promote products"
_BSD_ADVERTISING: Final = "all advertising materials mentioning features"
_MIT_GRANT: Final = "permission is hereby granted free of charge to any person obtaining a copy"
_MIT_NOTICE: Final = "this permission notice shall be included in all copies"
_ISC_GRANT: Final = "for any purpose with or without fee is hereby granted"

# The short notice at the head of a file names the GNU licence but often not the version.
_GNU_NOTICES: Final = tuple(
    Fingerprint(options, ((f"under the terms of the {name} as published by the free software foundation",),))
    for name, short in (
        ("gnu general public license", "GPL"),
        ("gnu lesser general public license", "LGPL"),
        ("gnu affero general public license", "AGPL"),
    )
    if (options := phrase_options(short))
)

_PRINTS: Final = (
    *_GNU_NOTICES,
    _print("MIT", f"{_MIT_GRANT}|{_MIT_NOTICE}", without="except as contained in this notice|this font software"),
    _print("X11", f"{_MIT_GRANT}|{_MIT_NOTICE}|except as contained in this notice"),
    _print("MIT-0", _MIT_GRANT, without=f"{_MIT_NOTICE}|neither the names of|this font software|dealings in the works"),
    _print("BSD-3-Clause", f"{_BSD_FORM}|{_BSD_NAMES}", without=f"{_BSD_ADVERTISING}|apache software foundation"),
    _print("BSD-4-Clause", f"{_BSD_FORM}|{_BSD_NAMES}|{_BSD_ADVERTISING}"),
    _print("BSD-2-Clause", _BSD_FORM, without=_BSD_NAMES),
    _print("Apache-1.1", f"{_BSD_FORM}|apache software license version 1.1"),
    _print(
        "Apache-2.0",
        "apache license version 2.0 january 2004",
        "licensed under the apache license version 2.0",
        "apache.org/licenses/license-2.0",
    ),
    _print(
        "MPL-2.0",
        "mozilla public license version 2.0|covered software",
        "subject to the terms of the mozilla public license v 2.0",
    ),
    _print("MPL-1.1", "mozilla public license version 1.1|covered code"),
    _print("GPL-2.0-only GPL-2.0-or-later", "gnu general public license version 2 june 1991"),
    _print("GPL-3.0-only GPL-3.0-or-later", "gnu general public license version 3 29 june 2007"),
    _print("LGPL-2.0-only LGPL-2.0-or-later", "gnu library general public license version 2 june 1991"),
    _print("LGPL-2.1-only LGPL-2.1-or-later", "gnu lesser general public license version 2.1 february 1999"),
    _print(
        "LGPL-3.0-only LGPL-3.0-or-later",
        "gnu lesser general public license version 3 29 june 2007",
        holds="GPL-3.0-only GPL-3.0-or-later",
    ),
    _print("AGPL-3.0-only AGPL-3.0-or-later", "gnu affero general public license version 3 19 november 2007"),
    _print("ISC", f"{_ISC_GRANT}|provided that the above copyright notice and this permission notice appear"),
    _print("0BSD", _ISC_GRANT, without="provided that the above copyright notice"),
    _print(
        "HPND MIT-CMU",
        "permission to use copy modify and distribute this software and its documentation for any purpose",
        without="with or without fee is hereby granted",
    ),
    _print(
        "PSF-2.0 Python-2.0 Python-2.0.1",
        "python software foundation license version 2|licensee",
        holds="0BSD HPND MIT-CMU CNRI-Python",
    ),
    _print("Unlicense", "this is free and unencumbered software released into the public domain"),
    _print("CC0-1.0", "cc0 1.0 universal", "creativecommons.org/publicdomain/zero/1.0"),
    _print(
        "Zlib",
        "altered source versions must be plainly marked as such|the origin of this software must not be misrepresented",
    ),
    _print("BSL-1.0", "boost software license version 1.0"),
    _print("WTFPL", "do what the fuck you want to public license"),
    _print("EPL-2.0", "eclipse public license v 2.0"),
    _print("EPL-1.0", "eclipse public license v 1.0"),
    _print("ZPL-2.1", "zope public license zpl version 2.1"),
    _print("OFL-1.1", "sil open font license version 1.1"),
)

_UNSAID: Final = re.compile(r"[^a-z0-9./+ ]+")
_STOP: Final = re.compile(r"\.(?=\s|$)")
_SPACE: Final = re.compile(r"\s+")


def recognise(text: str) -> tuple[Options, ...]:
    """Return the licences whose text is found, each as the identifiers that it can stand for, in a fixed order."""
    plain = _plain(text)
    found = [each for each in _PRINTS if _matches(each, plain)]
    held = frozenset[str]().union(*(each.holds for each in found))
    exact = [each.options for each in found if not any(other.options < each.options for other in found)]
    options = [each for each in exact if not each <= held]
    if _has_further_bsd_text(plain, options):
        options.append(frozenset({"BSD-2-Clause"}))
    return tuple(options)


def _plain(text: str) -> str:
    lowered = _SPACE.sub(" ", text.lower())
    return _SPACE.sub(" ", _STOP.sub(" ", _UNSAID.sub(" ", lowered)))


def _matches(each: Fingerprint, plain: str) -> bool:
    if any(phrase in plain for phrase in each.without):
        return False
    return any(all(phrase in plain for phrase in group) for group in each.groups)


def _has_further_bsd_text(plain: str, options: list[Options]) -> bool:
    # The two-clause text is the three-clause text without its last clause, so only counting tells that both are there.
    if frozenset({"BSD-3-Clause"}) not in options:
        return False
    return plain.count("redistributions in binary form must reproduce") > plain.count(_BSD_NAMES)
