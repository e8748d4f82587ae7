"""Graph-shaped workflows of agents, tools and people that stop anywhere and wake up exactly where they were.

Importing this package is cheap: public names are loaded when the first of them is used. Errors are in
`rehydrate.errors`, events in `rehydrate.model.events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rehydrate.api.builder import Case, Default, WorkflowBuilder
    from rehydrate.api.functional import FunctionalWorkflow, workflow
    from rehydrate.api.session import Session
    from rehydrate.api.sigterm import SigtermHook, drain_on_sigterm
    from rehydrate.api.workflow import Workflow
    from rehydrate.codecs import checkpointable
    from rehydrate.errors import RunFailedError, WorkflowCheckpointException
    from rehydrate.graph.context import WorkflowContext
    from rehydrate.graph.definition import Reducer
    from rehydrate.graph.description import WorkflowDescription
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
    from rehydrate.observers.opentelemetry import OpenTelemetryObserver
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
    from rehydrate.wiring import checkpoint_storage_from_url

__version__ = "0.1.0"

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


def __getattr__(name: str) -> object:
    """Load the public names at the first use of one."""
    if name not in __all__:
        raise AttributeError(f"module 'rehydrate' has no attribute {name!r}")
    from rehydrate import wiring  # noqa: PLC0415  (the reason is in the module's docstring)

    return getattr(wiring, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
