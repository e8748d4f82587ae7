"""The audit of the example, in a process of its own that comes to a place to be killed at: `STORE JOURNAL SITE`.

Two distributions are judged and saved; the third look-up never comes back.
"""

import asyncio
import importlib.util
import sys
from types import ModuleType

from rehydrate import SqliteCheckpointStorage
from rehydrate.demo.look_up import LookUp
from rehydrate.demo.messages import AuditRequest
from tests.project.source import ROOT


def example() -> ModuleType:
    """The program itself, as a module."""
    spec = importlib.util.spec_from_file_location("audit_example", ROOT / "examples" / "licence_audit_function.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class StuckLookUp(LookUp):
    """Lets one through for each commit, in turn, and the third never; then it says so."""

    def __init__(self, store: SqliteCheckpointStorage) -> None:
        super().__init__(0, 1)
        self.store = store
        self.turn = asyncio.Lock()
        self.passed = 0

    async def wait(self) -> None:
        async with self.turn:
            # The claim has number 0, what was read 1, and each verdict the next.
            while (await self.store.runs())[0].seq <= self.passed:
                pass
            if self.passed == 2:
                sys.stdout.write("stuck\n")
                sys.stdout.flush()
                await asyncio.Event().wait()
            self.passed += 1


async def audit(file: str, journal: str, site: str) -> None:
    """Run until it is stuck."""
    store = SqliteCheckpointStorage(file)
    await example().audit.run(
        AuditRequest((site,), site),
        run_id="a",
        checkpoint_storage=store,
        run_args={"journal": journal},
        resources={"look_up": StuckLookUp(store)},
    )


if __name__ == "__main__":
    asyncio.run(audit(*sys.argv[1:]))
