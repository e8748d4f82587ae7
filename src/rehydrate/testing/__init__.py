"""Testing: what the library's own tests use and users may use for theirs.

The suite for stores is in `rehydrate.testing.store_contract`. Nothing here needs a test framework.
"""

from __future__ import annotations

from .crashing import CrashError, Crashes, CrashPoint
from .driving import UNANSWERED, Answers, Driven, StoreMaker, Workflows, drive
from .failed_saves import FailedSaveError, assert_bears_failed_saves
from .faulty_store import Fault, FaultyStorage
from .replaying import Replayed, ReplayError, replay
from .resuming import ResumabilityError, assert_resumable
from .scripted import ScriptedExecutor
from .scripted_model import ModelFailure, ScriptedModel, ToolCall
from .undraining import claim_turns_again
from .virtual_time import StuckError, VirtualClock, VirtualLoop, run_virtually

__all__ = [
    "UNANSWERED",
    "Answers",
    "CrashError",
    "CrashPoint",
    "Crashes",
    "Driven",
    "FailedSaveError",
    "Fault",
    "FaultyStorage",
    "ModelFailure",
    "ReplayError",
    "Replayed",
    "ResumabilityError",
    "ScriptedExecutor",
    "ScriptedModel",
    "StoreMaker",
    "StuckError",
    "ToolCall",
    "VirtualClock",
    "VirtualLoop",
    "Workflows",
    "assert_bears_failed_saves",
    "assert_resumable",
    "claim_turns_again",
    "drive",
    "replay",
    "run_virtually",
]
