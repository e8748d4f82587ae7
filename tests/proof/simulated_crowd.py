"""Clients that know no plan: members of a crowd at one run, and callers of which nobody can repeat the call.

Each order of a crowd has a key and must be taken once, in whatever order; a call without key and id makes one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehydrate import RunFailedError, WorkflowRunResult
from rehydrate.errors import RehydrateError, StaleCheckpointError
from rehydrate.model.checkpoint import RESTING

from .simulated_clients import AGAIN, Client, SimCall
from .simulated_loop import pause
from .simulated_workflows import CROWD, TALLY, Order

if TYPE_CHECKING:
    from .simulated_world import World


class OneShot(Client):
    """Makes a call that nobody can repeat: without a key, and without an id."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, f"s{number}")
        self.number = 900 + number
        self.run_id: str | None = None

    async def live(self) -> None:
        """Make it."""
        await pause(self.random.random() * 40)
        call = SimCall("once", "desk", Order(self.number), {})
        try:
            self.run_id = (await self.attempt(call)).run_id
        except AGAIN:
            pass
        except RehydrateError as error:
            self.surprise(call, error)
        self.is_over = True


class Member(Client):
    """One of a crowd that brings orders to one run at once, each with a key, and waits for nobody else."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, f"m{number}")
        self.journal = CROWD
        self.number = 100 + number
        self.key = self.name

    async def live(self) -> None:
        """Have the order taken."""
        random = self.random
        await pause(random.random() * 15)
        first = {"run_id": CROWD, "idempotency_key": "the first"}
        call = SimCall("open", TALLY, Order(0), first)
        await self._until_done(call)
        options = {"checkpoint": "latest", "run_id": CROWD, "idempotency_key": self.key}
        result = await self._until_done(SimCall(f"order {self.number}", TALLY, Order(self.number), options))
        if (
            result is not None
            and result.status in RESTING
            and not any(text.startswith(f"{self.number} ") for text in logged(result))
        ):
            self.world.found(f"{self} was told that order {self.number} is done, and it is not in {logged(result)}")
        self.is_over = True

    async def _until_done(self, call: SimCall) -> WorkflowRunResult | None:
        world, random = self.world, self.random
        while True:
            takeover = world.has("takeover") and random.random() < 0.1
            try:
                return await self.attempt(call, takeover=takeover)
            except AGAIN as error:
                if isinstance(error, RunFailedError) and error.result.replayed:
                    return None  # that was its end, and the turn of another member has done its work since
                await pause(random.choice((0.01, 0.5, 5.0, 12.0)))
            except StaleCheckpointError:
                return None  # the same, where it was interrupted
            except RehydrateError as error:
                self.surprise(call, error)
                return None


def logged(result: WorkflowRunResult) -> list[str]:
    """Return what the crowd's run has booked."""
    return list(result.checkpoint.state.get("log", []))  # type: ignore[call-overload]
