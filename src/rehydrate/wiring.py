"""The wiring: the only place that names concrete stores, and where the public names come together.

`import rehydrate` loads none of it; the first public name that is used does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from rehydrate.api.builder import Case, Default, WorkflowBuilder
from rehydrate.api.session import Session
from rehydrate.api.sigterm import SigtermHook, drain_on_sigterm
from rehydrate.api.workflow import Workflow
from rehydrate.codecs import checkpointable
from rehydrate.errors import RunFailedError, StoreUnavailableError, WorkflowCheckpointException
from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.definition import Reducer
from rehydrate.graph.description import WorkflowDescription
from rehydrate.graph.executor import Executor, FunctionExecutor, executor
from rehydrate.graph.handlers import handler, response_handler
from rehydrate.graph.migration import MigrationView, PlainMessage, PlainObject, PlainRequest, PlainScope
from rehydrate.graph.policies import Retry
from rehydrate.graph.reducers import add, append, extend, merge
from rehydrate.graph.sub_requests import SubWorkflowRequest, SubWorkflowRequestMessage, SubWorkflowResponseMessage
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.model.checkpoint import Status
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.draining import DrainedRun, DrainSummary, drain
from rehydrate.runtime.following import RunEvents
from rehydrate.runtime.legacy import ExecutionContext, LegacyRequest
from rehydrate.runtime.requests import PendingRequest, RequestAnswer
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner, RunnerContext
from rehydrate.runtime.stream import RunStream
from rehydrate.stores.compressed import CompressedCheckpointStorage
from rehydrate.stores.encrypted import EncryptedCheckpointStorage
from rehydrate.stores.key_ring import KeyRing
from rehydrate.stores.memory import InMemoryCheckpointStorage
from rehydrate.stores.sqlite import SqliteCheckpointStorage

__all__ = [
    "Case",
    "CheckpointStorage",
    "CompressedCheckpointStorage",
    "Default",
    "DrainSummary",
    "DrainedRun",
    "EncryptedCheckpointStorage",
    "ExecutionContext",
    "Executor",
    "FunctionExecutor",
    "InMemoryCheckpointStorage",
    "KeyRing",
    "LegacyRequest",
    "MigrationView",
    "PendingRequest",
    "PlainMessage",
    "PlainObject",
    "PlainRequest",
    "PlainScope",
    "Reducer",
    "RequestAnswer",
    "Retry",
    "RunEvents",
    "RunFailedError",
    "RunStream",
    "Runner",
    "RunnerContext",
    "Session",
    "SigtermHook",
    "SqliteCheckpointStorage",
    "Status",
    "SubWorkflowRequest",
    "SubWorkflowRequestMessage",
    "SubWorkflowResponseMessage",
    "Workflow",
    "WorkflowBuilder",
    "WorkflowCheckpoint",
    "WorkflowCheckpointException",
    "WorkflowContext",
    "WorkflowDescription",
    "WorkflowExecutor",
    "WorkflowRunResult",
    "add",
    "append",
    "checkpoint_storage_from_url",
    "checkpointable",
    "drain",
    "drain_on_sigterm",
    "executor",
    "extend",
    "handler",
    "merge",
    "response_handler",
]

_KNOWN: Final = "sqlite:///runs.db (relative), sqlite:////var/lib/runs.db (absolute) or memory://"


def checkpoint_storage_from_url(url: str) -> CheckpointStorage:
    """Return the store that a URL names: `sqlite:///runs.db` or `memory://`. Raises `StoreUnavailableError`."""
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise StoreUnavailableError(repr(url), "a store's URL has no '?' and no '#'", f"Use {_KNOWN}.")
    if parts.scheme == "memory" and not parts.netloc and not parts.path:
        return InMemoryCheckpointStorage()
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return SqliteCheckpointStorage(Path(unquote(parts.path[1:])))
    raise StoreUnavailableError(repr(url), "this is no URL of a store that is known here", f"Use {_KNOWN}.")
