"""A small environment whose licences nobody can tell from the metadata, made for the demonstration.

Writes metadata files as an installer would; there is no code to import in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["UNCLEAR_LICENCES", "make_unclear_environment"]

_METADATA: Final = {
    ("contradictory", "1.0"): "License: MIT\nClassifier: License :: OSI Approved :: BSD License\n",
    ("silent", "0.3"): "Summary: says nothing about its licence\n",
    ("homemade", "2.1"): "License: see LICENSE\n",
}
_HOMEMADE_LICENCE: Final = "You may use this on Tuesdays, and on other days if you send us a postcard.\n"

UNCLEAR_LICENCES: Final = {"contradictory": "BSD-3-Clause", "silent": "LGPLv3+", "homemade": "proprietary"}
"""What a person found out about them."""


def make_unclear_environment(root: Path) -> Path:
    """Write the environment under `root` and return its directory."""
    site = root / "unclear" / "site-packages"
    for (name, version), headers in _METADATA.items():
        directory = site / f"{name}-{version}.dist-info"
        directory.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{headers}"
        (directory / "METADATA").write_text(text, encoding="utf-8")
    (site / "homemade-2.1.dist-info" / "LICENSE").write_text(_HOMEMADE_LICENCE, encoding="utf-8")
    return site
