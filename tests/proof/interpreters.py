"""Other Pythons of this machine, each with an environment that has what the core needs: `.venv-proof-3.12` and so on.

Made once and kept beside `.venv`; only long proofs use them. A Python that is not here, or for which there are no
wheels, is left out and named.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
ROOT = Path(__file__).parents[2]


def interpreter(version: str) -> str | None:
    """Return a Python of this version that can import the package's requirements; `None` where there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    python = ROOT / f".venv-proof-{version}" / "bin" / "python"
    if not _works(str(python), version):
        base = _base(version)
        if base is None:
            return None
        steps = [[base, "-m", "venv", "--clear", str(python.parents[1])]]
        steps.append([str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "msgspec"])
        for step in steps:
            if subprocess.run(step, capture_output=True, timeout=300, check=False).returncode:
                shutil.rmtree(python.parents[1], ignore_errors=True)
                return None
    return str(python)


def _works(python: str, version: str) -> bool:
    told = "import msgspec, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", told], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return False
    return done.stdout.strip() == version


def _base(version: str) -> str | None:
    """Return a Python of this version: on the path, or one of pyenv's."""
    found = [shutil.which(f"python{version}")]
    found += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    for python in found:
        if python is None:
            continue
        done = subprocess.run([python, "-c", "import venv"], capture_output=True, timeout=60, check=False)
        if done.returncode == 0:
            return python
    return None
