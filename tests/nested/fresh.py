"""A fresh process: builds workflows anew, restores what was handed over and goes on with it in one call each.

Reads jobs as JSON from its input and writes their outcomes as JSON. It knows nothing of the process that paused.
"""

import asyncio
import base64
import json
import sys
from pathlib import Path

from rehydrate import InMemoryCheckpointStorage, SqliteCheckpointStorage, WorkflowCheckpoint
from tests.nested.places import Place
from tests.nested.stories import STORIES
from tests.nested.tree import Gate


async def call(story, answers, hand_over, arguments=(), run_args=None) -> dict[str, object]:
    """Build `story` with `arguments` and answer, by request ids, from the checkpoint that was handed over."""
    workflow = STORIES[story](*arguments)
    if "bytes" in hand_over:
        place = Place("memory", Path())
        checkpoint = WorkflowCheckpoint.from_bytes(base64.b64decode(hand_over["bytes"]))
        store = InMemoryCheckpointStorage()
    else:
        place = Place("sqlite", Path(hand_over["file"]))
        checkpoint = hand_over["checkpoint"]
        store = SqliteCheckpointStorage(hand_over["file"])
    result = await workflow.run(
        checkpoint=checkpoint,
        responses=answers,
        run_args=run_args,
        resources={"gate": Gate(is_open=True)},
        checkpoint_storage=store,
    )
    await store.close()
    return {
        "status": result.status.value,
        "outputs": [repr(output) for output in result.outputs],
        "pending": [(request.path, request.executor_id, repr(request.data)) for request in result.pending_requests],
        "request_ids": [request.request_id for request in result.pending_requests],
        "hand_over": place.hand_over(result),
    }


if __name__ == "__main__":
    json.dump([asyncio.run(call(**job)) for job in json.load(sys.stdin)], sys.stdout)
