"""A process that shares nothing with the tests but files and bytes: it restores what it is told and goes on.

Reads one call a line from standard input, as JSON, and writes one line for each.
"""

import asyncio
import json
import sys
import traceback

from rehydrate import SqliteCheckpointStorage, WorkflowCheckpoint
from rehydrate.errors import RehydrateError
from tests.cases.flows import FLOWS


async def call(flow, told, options):
    """Make one call and say what came of it; `log` is what the executors of this process noted."""
    log = []
    workflow = FLOWS[flow](log)
    store = SqliteCheckpointStorage(told["path"]) if "path" in told else None
    checkpoint = told["checkpoint"] if store else WorkflowCheckpoint.from_bytes(bytes.fromhex(told["bytes"]))
    try:
        result = await workflow.run(checkpoint=checkpoint, checkpoint_storage=store, **options)
    except RehydrateError as error:
        return {"error": type(error).__name__, "text": str(error), "log": log}
    finally:
        if store is not None:
            await store.close()
    return {
        "status": result.status.value,
        "outputs": result.outputs,
        "open": [[request.request_id, request.path] for request in result.pending_requests],
        "log": log,
    }


def reply(line):
    """Answer one line; what goes wrong is part of the answer, so that the process serves the next test."""
    try:
        return asyncio.run(call(**json.loads(line)))
    except Exception:
        return {"error": "unexpected", "text": traceback.format_exc(), "log": []}


def main():
    for line in sys.stdin:
        sys.stdout.write(json.dumps(reply(line)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
