"""The claims of `claims_app.py` in a store that says at its end how often a whole checkpoint was read."""

import sys

from claims_app import payment  # the folder of an app is where it imports from

from rehydrate import Service, SqliteCheckpointStorage
from rehydrate.stores.around import StoreAround


class Counting(StoreAround):
    reads = 0

    async def load(self, ref):
        self.reads += 1
        return await super().load(ref)

    async def inspect(self, ref):
        self.reads += 1
        return await super().inspect(ref)

    async def close(self):
        print("whole reads:", self.reads, file=sys.stderr)  # noqa: T201  (for the test that counts)
        await super().close()


service = Service(Counting(SqliteCheckpointStorage("runs.db")), [payment])
