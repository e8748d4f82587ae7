"""Small made-up environments for the tests of the licence audit.

Writes metadata directories as installers do; no test needs anything to be installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rehydrate.demo.environment import Distribution

MIT_TEXT = """MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software, to deal in the Software without restriction.

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.
"""

BSD2_TEXT = """Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:

1. Redistributions of source code must retain the above copyright notice.
2. Redistributions in binary form must reproduce the above copyright notice.
"""

BSD3_TEXT = (
    BSD2_TEXT
    + """3. Neither the name of the copyright holder nor the names of its
   contributors may be used to endorse or promote products derived from
   this software without specific prior written permission.
"""
)


def install(
    site: Path,
    name: str,
    version: str,
    *headers: str,
    files: Mapping[str, str | bytes] | None = None,
    directory: str | None = None,
) -> Path:
    """Write the metadata of one distribution into `site` and return its directory."""
    entry = site / (directory or f"{name.replace('-', '_')}-{version}.dist-info")
    entry.mkdir(parents=True)
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *headers]
    (entry / "METADATA").write_text("\n".join(lines) + "\n\nA description.\n", encoding="utf-8")
    for path, content in (files or {}).items():
        target = entry / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return entry


def distribution(
    *,
    expression: str | None = None,
    field: str | None = None,
    classifiers: tuple[str, ...] = (),
    texts: tuple[tuple[str, str], ...] = (),
    name: str = "thing",
    version: str = "1.0",
) -> Distribution:
    """Make a distribution as if it had been read from `env`; classifiers are given without their first two parts."""
    full = tuple(f"License :: OSI Approved :: {each}" for each in classifiers)
    return Distribution(name, version, expression, field, full, texts, "env", f"env/{name}-{version}.dist-info")
