"""One path to audit, whatever it is: an environment or a requirements file.

Chooses the reader; reads nothing itself.
"""

from __future__ import annotations

from pathlib import Path

from rehydrate.demo.environment import RUNNING, AuditInputError, Environment, Finding, FindingKind
from rehydrate.demo.metadata import read_environment
from rehydrate.demo.requirements import look_up

__all__ = ["read_or_say_why", "read_source"]


def read_source(source: str, installed_in: str = RUNNING) -> Environment:
    """Read an environment, or a requirements file looked up in the environment `installed_in`.

    Raises `AuditInputError` if the path is neither.
    """
    path = Path(source)
    if source != RUNNING and path.is_file():
        return look_up(path, read_environment(installed_in))
    return read_environment(source)


def read_or_say_why(source: str, installed_in: str) -> Environment:
    """Read a source as above; one that cannot be read is an empty environment with a finding that says so."""
    try:
        return read_source(source, installed_in)
    except AuditInputError as error:
        # It was there when the command was given; a run that fails for a file that is gone would have to be repaired.
        return Environment(source, findings=(Finding(FindingKind.UNREADABLE, source, str(error), source),))
