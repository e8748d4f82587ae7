"""A process that knows nothing but a file: it takes the run in, answers its question, and says what came of it.

`python -m tests.history.fresh EXPORT DATABASE ANSWER`
"""

import asyncio
import json
import sys

from rehydrate import SqliteCheckpointStorage, import_run
from tests.history.flows import desk


async def main(export: str, database: str, answer: str) -> None:
    store = SqliteCheckpointStorage(database)
    taken = await import_run(store, export)
    workflow = desk(store)
    found = await workflow.run(checkpoint="latest", run_id=taken.run_id)
    request = found.pending_requests[0]
    done = await workflow.run(responses=[request.answer(json.loads(answer))], checkpoint=found)
    sys.stdout.write(json.dumps({"run_id": taken.run_id, "request": request.request_id, "outputs": done.outputs}))
    await store.close()


asyncio.run(main(*sys.argv[1:]))
