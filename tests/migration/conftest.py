"""The fixtures of this folder."""

from tests.migration.flows import store

__all__ = ["store"]
