"""Lists in state that were extended by nothing."""

import asyncio
from pathlib import Path
from typing import Never

from rehydrate import SqliteCheckpointStorage, WorkflowBuilder, WorkflowContext, executor, extend


def test_a_list_that_was_extended_by_nothing_is_set_whole_and_loads(tmp_path: Path) -> None:
    """A part that holds nothing, between others, is no piece of the value that is set over them."""

    @executor(id="grow")
    async def grow(given: list[str], ctx: WorkflowContext[Never, int]) -> None:
        if given == ["set"]:
            ctx.set_state("log", [*ctx.get_state("log"), "last"])
        else:
            ctx.update_state("log", given)
        ctx.yield_output(len(given))

    async def main() -> tuple[int, str]:
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            flow = WorkflowBuilder("grow", grow, checkpoint_storage=store, reducers={"log": extend}).build()
            many = [f"{number:060}" for number in range(60)]
            result = await flow.run(many, run_id="r")
            for message in ([], many, ["set"], many):
                result = await flow.run(message, run_id="r", checkpoint="latest")
            log = result.checkpoint.state["log"]
            assert isinstance(log, list)
            return len(log), str(log[120])

    assert asyncio.run(main()) == (181, "last")
