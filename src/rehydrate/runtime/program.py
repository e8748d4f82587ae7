"""A workflow as the runtime needs it: its definition, its codec, and where time and ids come from.

Made once per workflow and shared by all its runs; it holds no run state.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from rehydrate.codecs import ValueCodec
from rehydrate.graph.definition import Definition
from rehydrate.ports import CheckpointStorage, Clock, IdSource
from rehydrate.ports.observer import Observer

from .clock import RandomIds, SystemClock
from .outlets import Outlets
from .watch import Watch


@dataclass(frozen=True, eq=False)
class Program:
    """What runs of one workflow share."""

    graph: Definition
    codec: ValueCodec
    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=RandomIds)
    #: Told of each command of its turns, in tests.
    watch: Watch | None = None
    #: Told what calls do.
    observers: tuple[Observer, ...] = ()

    @cached_property
    def signature_digest(self) -> str:
        """The signature's SHA-256."""
        return digest_of(self.graph.signature)

    @cached_property
    def outlets(self) -> Outlets:
        """The places where messages go on; they hold nothing of a run."""
        return Outlets(self.graph, self.codec)

    def run_id_of_key(self, key: str | None) -> str | None:
        """Return the run id that a first call without one gets from its idempotency key."""
        if key is None:
            return None
        return hashlib.sha256(f"run of key\n{self.graph.name}\n{key}".encode()).hexdigest()[:32]


def digest_of(signature: str) -> str:
    """Return the SHA-256 by which a run names its signature."""
    return hashlib.sha256(signature.encode()).hexdigest()


class HasProgram(Protocol):
    """A workflow, as far as the runtime needs it."""

    @property
    def program(self) -> Program:
        """What its runs share."""
        ...

    @property
    def checkpoint_storage(self) -> CheckpointStorage | None:
        """Its store, if it has one."""
        ...
