"""What a run keeps of the call before, so that the next one, in whatever process, can be linked to it."""

import asyncio
from pathlib import Path

import pytest

from rehydrate import SqliteCheckpointStorage
from rehydrate.observers.telemetry import link_to
from tests.call.process import in_new_process
from tests.observers.claims import payment
from tests.observers.kit import Sdk


def test_a_run_that_paused_in_another_process_is_linked_to_its_span_there(tmp_path: Path) -> None:
    """The record holds trace and span of the call that paused; the resuming call has one link, to these."""
    name, trace_id, span_id = in_new_process(tmp_path, "tests.observers.paused")
    sdk = Sdk()

    async def scenario() -> None:
        async with SqliteCheckpointStorage(tmp_path / "runs.db") as store:
            (request,) = await store.requests()
            await payment(sdk.observer(), store=store).run(responses={request.request_id: True})

    asyncio.run(scenario())
    root = sdk.spans[-1]
    assert name == root.name == "workflow.run"
    assert [(link.context.trace_id, link.context.span_id) for link in root.links] == [(trace_id, span_id)]
    assert root.context.trace_id != trace_id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-" + "f" * 100_000,
        "\x00",
    ],
)
def test_what_is_no_context_is_no_link(text: str) -> None:
    """A record comes from a store and may hold anything; it makes no link and raises nothing."""
    assert link_to(text) is None


def test_a_context_is_a_link() -> None:
    """The same form, well filled, is a link."""
    link = link_to("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    assert (link.context.trace_id, link.context.span_id) == (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)
