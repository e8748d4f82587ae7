"""The table of common SPDX identifiers and the family that each belongs to.

Only data and look-ups: what a licence text or a classifier means is decided elsewhere. An identifier that is not
in the table has no family here; the caller has to ask.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["GNU_VERSIONS", "LINKING_EXCEPTIONS", "Family", "canonical_exception", "canonical_id", "family_of_id"]


class Family(Enum):
    """How far the conditions of a licence reach, from the least to the most demanding."""

    PUBLIC_DOMAIN = "public domain"
    PERMISSIVE = "permissive"
    WEAK_COPYLEFT = "weak copyleft"
    STRONG_COPYLEFT = "strong copyleft"
    PROPRIETARY = "proprietary"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """Place in the order of demands; a higher one asks for more."""
        return list(Family).index(self)


GNU_VERSIONS: Final = {"GPL": ("1.0", "2.0", "3.0"), "LGPL": ("2.0", "2.1", "3.0"), "AGPL": ("1.0", "3.0")}
"""The versions of each GNU licence that have an identifier."""


def _gnu(name: str) -> str:
    return " ".join(f"{name}-{version}-{end}" for version in GNU_VERSIONS[name] for end in ("only", "or-later"))


_IDS: Final[dict[Family, str]] = {
    Family.PUBLIC_DOMAIN: """
        CC0-1.0 CC-PDDC LicenseRef-Public-Domain NIST-PD PDDL-1.0 SAX-PD Unlicense blessing libselinux-1.0
    """,
    Family.PERMISSIVE: """
        0BSD AAL AFL-2.0 AFL-2.1 AFL-3.0 Apache-1.0 Apache-1.1 Apache-2.0 BSD-1-Clause BSD-2-Clause
        BSD-2-Clause-Patent BSD-3-Clause BSD-3-Clause-Clear BSD-3-Clause-LBNL BSD-4-Clause BSD-Source-Code BSL-1.0
        Beerware BlueOak-1.0.0 CC-BY-3.0 CC-BY-4.0 CNRI-Python ECL-2.0 EFL-2.0 FSFAP FTL HPND HPND-sell-variant ICU IJG
        ISC Intel JSON MIT MIT-0 MIT-CMU MIT-Modern-Variant MS-PL MulanPSL-2.0 NCSA NTP Naumen OLDAP-2.8 OpenSSL
        PHP-3.01 PSF-2.0 PostgreSQL Python-2.0 Python-2.0.1 SMLNJ TCL UPL-1.0 Unicode-3.0 Unicode-DFS-2016 Vim W3C WTFPL
        X11 Xnet ZPL-2.0 ZPL-2.1 Zlib bzip2-1.0.6 curl libpng-2.0 libtiff zlib-acknowledgement
    """,
    Family.WEAK_COPYLEFT: f"""
        APSL-2.0 Artistic-1.0 Artistic-1.0-Perl Artistic-2.0 CDDL-1.0 CDDL-1.1 CECILL-C CPL-1.0 EPL-1.0 EPL-2.0
        ErlPL-1.1 IPL-1.0 MPL-1.0 MPL-1.1 MPL-2.0 MPL-2.0-no-copyleft-exception MS-RL OFL-1.1 SPL-1.0 {_gnu("LGPL")}
    """,
    Family.STRONG_COPYLEFT: f"""
        CC-BY-SA-3.0 CC-BY-SA-4.0 CECILL-2.0 CECILL-2.1 EUPL-1.0 EUPL-1.1 EUPL-1.2 OSL-3.0 QPL-1.0 RPL-1.5 SSPL-1.0
        Sleepycat {_gnu("GPL")} {_gnu("AGPL")}
    """,
    Family.PROPRIETARY: """
        BUSL-1.1 CC-BY-NC-4.0 CC-BY-NC-ND-4.0 CC-BY-NC-SA-4.0 CC-BY-ND-4.0 Elastic-2.0 LicenseRef-Proprietary
        PolyForm-Noncommercial-1.0.0 PolyForm-Small-Business-1.0.0
    """,
}

_FAMILIES: Final = {licence: family for family, ids in _IDS.items() for licence in ids.split()}

# Short forms that the SPDX list has withdrawn because they left open whether later versions are allowed.
_WITHDRAWN: Final = {
    f"{name}-{version}{mark}": f"{name}-{version}-{end}"
    for name, versions in GNU_VERSIONS.items()
    for version in versions
    for mark, end in (("", "only"), ("+", "or-later"))
}
_CANONICAL: Final = {licence.lower(): licence for licence in _FAMILIES} | {
    old.lower(): new for old, new in _WITHDRAWN.items()
}

LINKING_EXCEPTIONS: Final = frozenset(
    {"Classpath-exception-2.0", "GCC-exception-2.0", "GCC-exception-3.1", "LGPL-3.0-linking-exception"}
)
"""Exceptions that let other code link without taking over the conditions."""

_OTHER_EXCEPTIONS: Final = frozenset(
    {"Autoconf-exception-3.0", "Bison-exception-2.2", "Bootloader-exception", "Font-exception-2.0", "LLVM-exception"}
)
_EXCEPTIONS: Final = {name.lower(): name for name in LINKING_EXCEPTIONS | _OTHER_EXCEPTIONS}


def canonical_id(licence: str) -> str | None:
    """Return an identifier as the table spells it (also for withdrawn short forms), or None if it is not there."""
    return _CANONICAL.get(licence.lower())


def canonical_exception(name: str) -> str | None:
    """Return the name of an exception as the table spells it, or None if it is not there."""
    return _EXCEPTIONS.get(name.lower())


def family_of_id(licence: str) -> Family:
    """Return the family of a canonical identifier; `UNKNOWN` if the table does not have it."""
    return _FAMILIES.get(licence, Family.UNKNOWN)
