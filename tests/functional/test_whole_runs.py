"""A run of functions as a whole: exported, imported, encrypted, pruned, deleted, and taken up by a fresh process."""

import asyncio
import json

import pytest

from rehydrate import (
    EncryptedCheckpointStorage,
    FunctionalContext,
    InMemoryCheckpointStorage,
    KeyRing,
    Retention,
    SqliteCheckpointStorage,
    Status,
    WorkflowCheckpoint,
    export_run,
    import_run,
    prune,
    step,
    workflow,
)
from tests.call.process import in_new_process
from tests.functional.book import answers, run

SECRET = "the secret word"


@step
async def whisper(text: str) -> str:
    return f"{text} {SECRET}"


@workflow(types=[str])
async def inner(text: str, ctx: FunctionalContext) -> str:
    ctx.state.set("told", text)
    return await whisper(text) + await ctx.request_info(f"{text}?", response_type=str)


@workflow(types=[str], calls=[inner])
async def outer(text: str, ctx: FunctionalContext) -> str:
    one, two = await ctx.gather(ctx.call(inner, text), ctx.request_info(f"{text}!", response_type=str))
    return f"{one} {two} {ctx.state.get('count', 0)}"


def asked(store):
    """Leave a run with two questions, one of them a level down."""
    first = run(outer, "a", run_id="r", checkpoint_storage=store)
    assert [request.data for request in first.pending_requests] == ["a!", "a?"]
    return first


def finished(store, first):
    """Answer both and return how the run ended."""
    last = run(outer, responses=answers(first, "one", "two"), checkpoint_storage=store)
    return last.status, last.output


ENDED = (Status.IDLE, f"a {SECRET}two one 0")


def test_a_waiting_run_is_exported_and_imported(store, tmp_path):
    """In another store it goes on with its questions."""
    first = asked(store)
    file = tmp_path / "run.rehydrate"
    other = InMemoryCheckpointStorage()
    asyncio.run(export_run(store, "r", file))
    asyncio.run(import_run(other, file))
    assert finished(other, first) == ENDED
    assert finished(store, first) == ENDED


def test_a_waiting_run_is_a_checkpoint_in_bytes(store):
    """From bytes alone, without a store."""
    first = asked(store)
    taken = WorkflowCheckpoint.from_bytes(first.checkpoint.to_bytes())
    last = run(outer, checkpoint=taken, responses=answers(first, "one", "two"))
    assert (last.status, last.output) == ENDED


def test_what_a_function_remembers_is_encrypted(tmp_path):
    """Neither results, questions nor state are readable in the file; with the key the run goes on."""
    path = tmp_path / "runs.db"
    keys = KeyRing({"k": bytes(32)}, "k")
    inside = SqliteCheckpointStorage(path)
    first = asked(EncryptedCheckpointStorage(inside, keys))
    asyncio.run(inside.close())
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    for text in (SECRET, "a?", "whisper", "told"):
        assert text.encode() not in held
    again = SqliteCheckpointStorage(path)
    assert finished(EncryptedCheckpointStorage(again, keys), first) == ENDED
    asyncio.run(again.close())


def test_a_retention_leaves_what_a_waiting_function_needs(store):
    """With only the newest checkpoint left, all that it remembers is there."""
    first = asked(store)
    asyncio.run(prune(store, Retention(keep_last=1)))
    assert len(asyncio.run(store.history("r"))) == 1
    assert finished(store, first) == ENDED
    assert asyncio.run(store.delete("r")) is not False
    assert asyncio.run(store.head("r")) is None


@pytest.mark.parametrize("order", ["inner first", "outer first"])
def test_a_fresh_process_goes_on_with_each_answer(tmp_path, order):
    """Each answer in a process of its own, which has seen nothing of the run but the file."""
    store = SqliteCheckpointStorage(tmp_path / "runs.db")
    first = asked(store)
    asyncio.run(store.close())
    (outer_one, inner_one) = first.pending_requests
    steps = [(outer_one, "one"), (inner_one, "two")]
    if order == "inner first":
        steps.reverse()
    told = [
        in_new_process(tmp_path, "tests.functional.test_whole_runs", json.dumps({request.request_id: answer}))
        for request, answer in steps
    ]
    assert told == [["IDLE_WITH_PENDING_REQUESTS", []], ["IDLE", [ENDED[1]]]]


async def main(responses):
    """Answer in this process, and say how the run stands."""
    store = SqliteCheckpointStorage("runs.db")
    result = await outer.run(responses=responses, checkpoint_storage=store)
    await store.close()
    return [result.status.value, result.outputs]


if __name__ == "__main__":
    import sys

    sys.stdout.write(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
