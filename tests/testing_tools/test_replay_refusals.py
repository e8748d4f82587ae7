"""What `replay` does with a run of another version or graph, and with a file that is none."""

import io

import pytest

from rehydrate import WorkflowBuilder, WorkflowContext, executor
from rehydrate.errors import CheckpointCorruptError, ForeignCheckpointError, GraphChangedError
from rehydrate.testing import replay, run_virtually
from tests.testing_tools.flows import desk, sign, split
from tests.testing_tools.recordings import recorded, refused, replayed


def test_an_older_version_is_brought_up_and_a_graph_that_changed_without_one_is_refused():
    """A migration makes the record today's, at both ends of each call; without one the error says what is otherwise."""

    def version(number, key):
        @executor(id="total")
        async def total(amount: int, ctx: WorkflowContext) -> int:
            ctx.set_state(key, amount)
            return amount

        migrate = {1: lambda view: view.rename_state_key("sum", "total")} if number == 2 else None
        return WorkflowBuilder("totals", total, version=number, migrate=migrate).build()

    async def scenario():
        file = await recorded(version(1, "sum"), 5)
        told = await replayed(version(2, "total"), file)
        error = await refused(version(2, "sum"), file)
        flow, other = WorkflowBuilder("desk", split).add_chain([split, sign]).build(), await recorded(desk(), "a")
        with pytest.raises(GraphChangedError, match="asking: missing now"):
            await replayed(flow, other)
        with pytest.raises(ForeignCheckpointError):
            await replayed(desk(), file)
        return told, error

    told, error = run_virtually(scenario())
    assert told.calls == 1
    assert "state 'total': 5 recorded, nothing today" in str(error)


def test_a_file_that_is_no_export_or_was_changed_is_refused():
    """As an import refuses it, before anything has run."""

    async def scenario():
        good = (await recorded(desk(), "a")).getvalue()
        for bad in (b"", good[:-1], good[:200] + b"\0" + good[201:], b"PK" + good):
            with pytest.raises(CheckpointCorruptError):
                await replay(desk, io.BytesIO(bad))

    run_virtually(scenario())
