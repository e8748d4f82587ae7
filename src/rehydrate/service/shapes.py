"""What JSON the answers to a run's open requests are, by the types of its workflow, for hosts that ask people.

It opens no question to anybody and changes nothing.
"""

from __future__ import annotations

from rehydrate.api.workflow import Workflow
from rehydrate.errors import RehydrateError
from rehydrate.model.records import RunRecord
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.checks import check_homes, check_workflow
from rehydrate.runtime.pending import PendingRequests

from .history import RunHistory


async def answer_shapes(storage: CheckpointStorage, workflow: Workflow, run_id: str) -> dict[str, str]:
    """Return them by request id; none where the graph is not the one that asked, or the run cannot be read."""
    try:
        checkpoint = await RunHistory(storage, run_id).load("latest")
        check_workflow(workflow.definition, checkpoint)
        record = checkpoint.records.get("", "run", "")
        if not isinstance(record, RunRecord) or record.signature != workflow.program.signature_digest:
            return {}
        check_homes(workflow.definition, checkpoint)
        requests = PendingRequests(checkpoint.records, workflow.definition, workflow.program.codec)
        return {request.request_id: request.shape for request in requests}
    except RehydrateError:
        return {}  # who answers is told what is wrong with it; a list of questions is not the place
