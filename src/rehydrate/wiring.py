"""The wiring: the only place that names concrete stores, and where the public names come together.

`import rehydrate` loads none of it; the first public name that is used does. Stores, services and what draws are loaded
one by one, each when it is first asked for.
"""

# ruff: noqa: PLC0415  (see above)

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rehydrate.api.builder import Case, Default, WorkflowBuilder
from rehydrate.api.functional import FunctionalWorkflow, workflow
from rehydrate.api.session import Session
from rehydrate.api.sigterm import SigtermHook, drain_on_sigterm
from rehydrate.api.workflow import Workflow
from rehydrate.codecs import checkpointable
from rehydrate.errors import RunFailedError, WorkflowCheckpointException, WrongCallError
from rehydrate.graph.context import WorkflowContext
from rehydrate.graph.definition import Reducer
from rehydrate.graph.executor import Executor, FunctionExecutor, executor
from rehydrate.graph.functional_context import FunctionalContext
from rehydrate.graph.handlers import handler, response_handler
from rehydrate.graph.migration import MigrationView, PlainMessage, PlainObject, PlainRequest, PlainScope
from rehydrate.graph.policies import Retry
from rehydrate.graph.reducers import add, append, extend, merge
from rehydrate.graph.step import Step, step
from rehydrate.graph.sub_requests import SubWorkflowRequest, SubWorkflowRequestMessage, SubWorkflowResponseMessage
from rehydrate.graph.sub_workflow import WorkflowExecutor
from rehydrate.model.checkpoint import Status
from rehydrate.ports import CheckpointStorage, Finding
from rehydrate.runtime.checkpoint import WorkflowCheckpoint
from rehydrate.runtime.draining import DrainedRun, DrainSummary, drain
from rehydrate.runtime.following import RunEvents
from rehydrate.runtime.legacy import ExecutionContext
from rehydrate.runtime.legacy_messages import LegacyMessage, LegacyRequest
from rehydrate.runtime.requests import JsonAnswer, PendingRequest, RequestAnswer
from rehydrate.runtime.result import WorkflowRunResult
from rehydrate.runtime.runner import Runner, RunnerContext
from rehydrate.runtime.step_run import StepRun, current_step
from rehydrate.runtime.stream import RunStream
from rehydrate.stores.named import url_of_named
from rehydrate.stores.urls import Form, may_be_secret, parsed_url, shown_url

if TYPE_CHECKING:
    from rehydrate.graph.description import WorkflowDescription
    from rehydrate.observers.opentelemetry import OpenTelemetryObserver
    from rehydrate.service.agent_framework.importing import (
        AgentFrameworkImport,
        ImportedAgentRun,
        import_agent_framework,
    )
    from rehydrate.service.differences import Cut, Difference, Differences, diff_checkpoints
    from rehydrate.service.health import HealthReport, check_health
    from rehydrate.service.history import HistoryEntry, RunHistory
    from rehydrate.service.pruning import KeptCheckpoint, PrunedRun, PruneSummary, prune
    from rehydrate.service.retention import Retention
    from rehydrate.service.service import Service, WaitingRequest
    from rehydrate.service.transfer import ExportedRun, export_run, import_run
    from rehydrate.service.worker import Worker
    from rehydrate.stores.compressed import CompressedCheckpointStorage
    from rehydrate.stores.encrypted import EncryptedCheckpointStorage
    from rehydrate.stores.file import FileCheckpointStorage
    from rehydrate.stores.key_ring import KeyRing
    from rehydrate.stores.memory import InMemoryCheckpointStorage
    from rehydrate.stores.postgres import PostgresCheckpointStorage
    from rehydrate.stores.sqlite import SqliteCheckpointStorage

__all__ = [
    "AgentFrameworkImport",
    "Case",
    "CheckpointStorage",
    "CompressedCheckpointStorage",
    "Cut",
    "Default",
    "Difference",
    "Differences",
    "DrainSummary",
    "DrainedRun",
    "EncryptedCheckpointStorage",
    "ExecutionContext",
    "Executor",
    "ExportedRun",
    "FileCheckpointStorage",
    "Finding",
    "FunctionExecutor",
    "FunctionalContext",
    "FunctionalWorkflow",
    "HealthReport",
    "HistoryEntry",
    "ImportedAgentRun",
    "InMemoryCheckpointStorage",
    "JsonAnswer",
    "KeptCheckpoint",
    "KeyRing",
    "LegacyMessage",
    "LegacyRequest",
    "MigrationView",
    "OpenTelemetryObserver",
    "PendingRequest",
    "PlainMessage",
    "PlainObject",
    "PlainRequest",
    "PlainScope",
    "PostgresCheckpointStorage",
    "PruneSummary",
    "PrunedRun",
    "Reducer",
    "RequestAnswer",
    "Retention",
    "Retry",
    "RunEvents",
    "RunFailedError",
    "RunHistory",
    "RunStream",
    "Runner",
    "RunnerContext",
    "Service",
    "Session",
    "SigtermHook",
    "SqliteCheckpointStorage",
    "Status",
    "Step",
    "StepRun",
    "SubWorkflowRequest",
    "SubWorkflowRequestMessage",
    "SubWorkflowResponseMessage",
    "WaitingRequest",
    "Worker",
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
    "check_health",
    "checkpoint_storage_from_url",
    "checkpointable",
    "current_step",
    "diff_checkpoints",
    "drain",
    "drain_on_sigterm",
    "executor",
    "export_run",
    "extend",
    "handler",
    "import_agent_framework",
    "import_run",
    "merge",
    "prune",
    "response_handler",
    "step",
    "workflow",
]

_KEEP_EVENTS: Final = {"keep_events": ("true", "false")}


def __getattr__(name: str) -> object:
    """Load a store, a service or a drawing with all that it needs, the first time that one of its names is used."""
    match name:
        case "WorkflowDescription":
            from rehydrate.graph import description as home
        case "CompressedCheckpointStorage":
            from rehydrate.stores import compressed as home
        case "EncryptedCheckpointStorage" | "KeyRing":
            from rehydrate.stores import encrypted as home
        case "FileCheckpointStorage":
            from rehydrate.stores import file as home
        case "InMemoryCheckpointStorage":
            from rehydrate.stores import memory as home
        case "PostgresCheckpointStorage":
            from rehydrate.stores import postgres as home
        case "SqliteCheckpointStorage":
            from rehydrate.stores import sqlite as home
        case "OpenTelemetryObserver":
            from rehydrate.observers import opentelemetry as home
        case _:
            home = _service(name)
    return getattr(home, name)


def _service(name: str) -> object:
    """Return the module of the service that has a name."""
    match name:
        case "AgentFrameworkImport" | "ImportedAgentRun" | "import_agent_framework":
            from rehydrate.service.agent_framework import importing as home
        case "Cut" | "Difference" | "Differences" | "diff_checkpoints":
            from rehydrate.service import differences as home
        case "HealthReport" | "check_health":
            from rehydrate.service import health as home
        case "HistoryEntry" | "RunHistory":
            from rehydrate.service import history as home
        case "KeptCheckpoint" | "PruneSummary" | "PrunedRun" | "Retention" | "prune":
            from rehydrate.service import pruning as home
        case "Service" | "WaitingRequest":
            from rehydrate.service import service as home
        case "Worker":
            from rehydrate.service import worker as home
        case "ExportedRun" | "export_run" | "import_run":
            from rehydrate.service import transfer as home
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return home


def _forms(drivers: tuple[str, ...]) -> dict[str, Form]:
    """Return a form of URL for each kind of store.

    Paths are as users of SQLAlchemy know them; `file` URLs are those of RFC 8089.
    """
    postgres = Form("postgresql://user:password@host/database", _KEEP_EVENTS, foreign=True)
    return {
        "sqlite": Form(
            "sqlite:///runs.db (sqlite:////var/lib/runs.db for an absolute path)", {**_KEEP_EVENTS, "driver": drivers}
        ),
        "file": Form("file:///var/lib/runs (file:runs for a relative path)", _KEEP_EVENTS),
        "postgresql": postgres,
        "postgres": postgres._replace(example="postgres://user:password@host/database"),
        "memory": Form("memory://", _KEEP_EVENTS),
    }


def checkpoint_storage_from_url(url: str) -> CheckpointStorage:
    """Return the store that a URL names, with `?keep_events=true` one that keeps events. Raises `WrongCallError`.

    `sqlite:///runs.db`, `file:///var/lib/runs`, `postgresql://host/database` or `memory://`.
    """
    from rehydrate.stores.sqlite_driver import DRIVERS, check_driver

    forms = _forms(DRIVERS)
    found = parsed_url(url, forms)
    keep_events = found.options.get("keep_events") == "true"
    path = found.path
    match found.scheme:
        case "postgresql" | "postgres":
            from rehydrate.stores.postgres import PostgresCheckpointStorage

            return PostgresCheckpointStorage(found.whole, keep_events=keep_events)
        case "memory" if not path:
            from rehydrate.stores.memory import InMemoryCheckpointStorage

            return InMemoryCheckpointStorage(keep_events=keep_events)
        case "file" if path:
            from rehydrate.stores.file import FileCheckpointStorage

            return FileCheckpointStorage(path, keep_events=keep_events)
        case "sqlite" if len(path) > 1 and path.startswith("/"):
            from rehydrate.stores.sqlite import SqliteCheckpointStorage

            driver = check_driver(found.options.get("driver", DRIVERS[0]))
            return SqliteCheckpointStorage(path[1:], keep_events=keep_events, driver=driver)
        case _:
            raise WrongCallError(f"{shown_url(url)!r} names no store.", f"Use {forms[found.scheme].example}.")


def is_secret_name(name: str) -> bool:
    """Tell whether the name of a store on a command line may hold a password."""
    return may_be_secret(name, (*_KEEP_EVENTS, "driver"))


def named_checkpoint_storage(name: str, *, create: bool) -> CheckpointStorage:
    """Return the store that a command line names, by path or URL; `create`: it need not be there.

    Raises `WrongCallError`.
    """
    from rehydrate.stores.sqlite_driver import DRIVERS

    url = url_of_named(name, create=create)
    found = parsed_url(url, _forms(DRIVERS))
    place = {"sqlite": found.path[1:], "file": found.path}.get(found.scheme)
    if place and not create and not Path(place).exists():
        raise WrongCallError(f"there is no store {shown_url(name)!r}.", "Look at the path, or begin with a run in it.")
    return checkpoint_storage_from_url(url)
