"""One path to audit, whatever it is: an environment or a requirements file.

Chooses the reader; reads nothing itself.
"""

from __future__ import annotations

from pathlib import Path

from rehydrate.demo.environment import RUNNING, Environment
from rehydrate.demo.metadata import read_environment
from rehydrate.demo.requirements import look_up

__all__ = ["read_source"]


def read_source(source: str, installed_in: str = RUNNING) -> Environment:
    """Read an environment, or a requirements file looked up in the environment `installed_in`.

    Raises `AuditInputError` if the path is neither.
    """
    path = Path(source)
    if source != RUNNING and path.is_file():
        return look_up(path, read_environment(installed_in))
    return read_environment(source)
