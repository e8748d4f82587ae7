"""What is special about the memory store."""

import subprocess
import sys

FORK = """
import asyncio, os
from rehydrate.model.checkpoint import Latest
from rehydrate.stores.memory import InMemoryCheckpointStorage
from rehydrate.testing.store_contract import CommitMaker, ManualClock

store, maker = InMemoryCheckpointStorage(clock=ManualClock()), CommitMaker()
asyncio.run(store.commit(maker.claim({"k": b"v"})))

async def look():
    head, stored = await store.head("run"), await store.load(Latest("run"))
    return head.owner, head.alive, stored.records

async def take_over():
    heir = maker.copy(owner="heir", tag="heir")
    await store.commit(heir.claim())
    return await look()

child = os.fork()
if child == 0:
    print("child", asyncio.run(look()), asyncio.run(take_over()), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", asyncio.run(look()))
"""


def test_a_forked_copy_owns_nothing() -> None:
    """In a forked child the parent's runs are free to claim, and what the child does is not seen by the parent."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "child ('owner', False, {'k': b'v'}) ('heir', True, {'k': b'v'})",
        "parent ('owner', True, {'k': b'v'})",
    ]
