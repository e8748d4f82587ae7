"""A process of its own: it runs a claim to its question in a file, and prints the ids of its span as JSON."""

import asyncio
import json
import sys

from rehydrate import SqliteCheckpointStorage
from tests.observers.claims import Claim, payment
from tests.observers.kit import Sdk


async def main() -> None:
    """Run to the pause."""
    sdk = Sdk()
    async with SqliteCheckpointStorage("runs.db") as store:
        await payment(sdk.observer(), store=store).run(Claim("c-1", 5000), run_id="c-1")
    span = sdk.spans[-1]
    sys.stdout.write(json.dumps([span.name, span.context.trace_id, span.context.span_id]))


if __name__ == "__main__":
    asyncio.run(main())
