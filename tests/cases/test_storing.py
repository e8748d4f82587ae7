"""Storing: the fifth chapter of the situations."""

import asyncio
import sqlite3
from dataclasses import dataclass, replace
from typing import Never

import pytest

from rehydrate import (
    Executor,
    Runner,
    Status,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    append,
    checkpointable,
    executor,
    handler,
    response_handler,
)
from rehydrate.errors import CheckpointCorruptError, GraphChangedError, NotStorableError
from tests.cases.flows import adder, asking_child, three, uneven_join
from tests.cases.kit import Place, answers, failed, run
from tests.cases.values import MARKERS, TYPES, VALUES, exactly

# 41 ------------------------------------------------------------------------------------------------------------------


def keeping(seen):
    """One executor that sets {"h": [1]} first, later reads it, changes what it read and does not set it."""

    @executor(id="keep")
    async def keep(turn: int, ctx: WorkflowContext) -> None:
        if turn == 1:
            await ctx.set_state("notes", {"h": [1]})
        notes = ctx.get_state("notes")
        seen.append(notes["h"].copy())
        notes["h"].append(2)
        seen.append(ctx.get_state("notes")["h"])

    return WorkflowBuilder("keeping", keep).build()


def test_a_change_that_was_not_set_is_not_kept(place):
    """Case 41: what a handler appends to a value it read is gone in the next read, the next turn and every restore."""
    seen = []
    workflow = keeping(seen)
    first = run(workflow, 1, run_id="r", checkpoint_storage=place.store)
    second = run(workflow, 2, checkpoint=first, checkpoint_storage=place.store)
    third = run(keeping(seen), 3, checkpoint=second, checkpoint_storage=place.reopen())
    assert seen == [[1]] * 6
    assert third.checkpoint.state == {"notes": {"h": [1]}}


def test_a_change_that_was_not_set_is_not_kept_without_a_store():
    """Case 41: the same where turns go on from checkpoint objects and nothing is stored."""
    seen = []
    workflow = keeping(seen)
    first = run(workflow, 1)
    run(workflow, 3, checkpoint=run(workflow, 2, checkpoint=first))
    assert seen == [[1]] * 6


# 42 ------------------------------------------------------------------------------------------------------------------


class Stranger:
    """Registered nowhere."""


def setting_a_stranger(caught, effect):
    """One executor that tries to record a value of a type that was never registered, and notes what it is told."""

    class Tries(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[Never, str | list]) -> None:
            try:
                effect(ctx)
            except NotStorableError as error:
                caught.append(error)
            await ctx.yield_output("went on")

        @response_handler
        async def on_answer(self, question: list, answer: str, ctx: WorkflowContext[Never, str | list]) -> None:
            await ctx.yield_output(answer)

    return WorkflowBuilder("strange", Tries("tries"), reducers={"grown": append}).build()


EFFECTS = {
    "set_state": lambda ctx: ctx.set_state("settings", {"deep": [Stranger()]}),
    "update_state": lambda ctx: ctx.update_state("grown", Stranger()),
    "yield_output": lambda ctx: ctx.yield_output([Stranger()]),
    "request_info": lambda ctx: ctx.request_info([Stranger()], response_type=str),
}


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("kind", ["none", "memory", "sqlite"])
def test_a_value_of_an_unregistered_type_is_refused_where_it_is_recorded(tmp_path, kind, effect):
    """Case 42: it is refused at that line, by name of its type, with every store and with none; nothing is recorded."""
    caught = []
    workflow = setting_a_stranger(caught, EFFECTS[effect])
    place = None if kind == "none" else Place(kind, tmp_path)
    result = run(workflow, 1, checkpoint_storage=place.store if place else None)
    if place:
        place.close()
    assert [type(error) for error in caught] == [NotStorableError]
    assert "Stranger" in str(caught[0])
    assert result.outputs == ["went on"]
    assert (result.checkpoint.state, result.pending_requests) == ({}, ())


@pytest.mark.parametrize(("effect", "key"), [("set_state", "settings"), ("update_state", "grown")])
def test_the_refusal_of_a_state_value_names_its_key(effect, key):
    """Case 42: who reads the error knows which key was to hold the value."""
    caught = []
    run(setting_a_stranger(caught, EFFECTS[effect]), 1)
    assert key in str(caught[0])


def test_a_refusal_that_is_not_caught_fails_the_run_at_that_line(place):
    """Case 42: the refusal is the executor's exception, and what was recorded before that line is gone with it."""

    @executor(id="sets")
    async def sets(number: int, ctx: WorkflowContext) -> None:
        await ctx.set_state("fine", number)
        await ctx.set_state("settings", Stranger())

    error = failed(WorkflowBuilder("strange", sets).build(), 1, checkpoint_storage=place.store)
    assert isinstance(error.__cause__, NotStorableError)
    assert error.result.checkpoint.state == {}


@checkpointable(name="cart")
@dataclass
class Cart:
    """Stands in no annotation of a handler."""

    items: list[str]


def test_a_marked_type_that_only_state_holds_is_storable(place):
    """Section 6: types in annotations are registered at build, others with @checkpointable."""

    @executor(id="shop")
    async def shop(item: str, ctx: WorkflowContext[Never, int]) -> None:
        cart = ctx.get_state("cart", Cart([]))
        cart.items.append(item)
        await ctx.set_state("cart", cart)
        await ctx.yield_output(len(cart.items))

    workflow = WorkflowBuilder("shop", shop).build()
    first = run(workflow, "a", checkpoint_storage=place.store)
    assert run(workflow, "b", checkpoint=first, checkpoint_storage=place.reopen()).outputs == [2]


# 43, 44 --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parcel:
    """A message that may hold anything."""

    content: object


def carrying(value, seen):
    """a puts the value into state, a message, a question and an output; later readers note what they got."""

    class Sender(Executor):
        @handler
        async def on_turn(self, turn: int, ctx: WorkflowContext[Parcel]) -> None:
            if turn == 1:
                await ctx.set_state("value", value)
                await ctx.send_message(Parcel(value))
                await ctx.request_info(Parcel(value), response_type=Parcel)
            else:
                seen["state"] = ctx.get_state("value")

        @response_handler
        async def on_answer(self, question: Parcel, answer: Parcel, ctx: WorkflowContext[Parcel]) -> None:
            seen["question"], seen["answer"] = question.content, answer.content

    class Receiver(Executor):
        @handler
        async def on_parcel(self, parcel: Parcel, ctx: WorkflowContext[Never, Parcel]) -> None:
            seen["message"] = parcel.content
            await ctx.yield_output(parcel)

        @handler
        async def on_value(self, never_sent: TYPES, ctx: WorkflowContext) -> None:
            """Registers the types."""

    sender, receiver = Sender("a"), Receiver("b")
    return WorkflowBuilder("carrying", sender).add_edge(sender, receiver).build()


def carried(place, value):
    """Send a value every way through a run that is restored in between, and return what came out, by way."""
    seen = {}
    first = run(carrying(value, seen), 1, run_id="r", checkpoint_storage=place.store)
    seen["output"] = first.output.content
    seen["request"] = first.pending_requests[0].data.content
    latest = {"run_id": "r", "checkpoint": "latest", "checkpoint_storage": place.reopen()}
    second = run(carrying(None, seen), responses=[first.pending_requests[0].answer(Parcel(value))], **latest)
    assert second.status is Status.IDLE
    latest["checkpoint_storage"] = place.reopen()
    run(carrying(None, seen), 2, **latest)
    return seen


WAYS = {"state", "message", "question", "answer", "output", "request"}


@pytest.mark.parametrize("name", VALUES)
def test_a_hard_value_comes_back_equal_and_of_the_same_type(place, name):
    """Case 43: state, messages, questions, answers and outputs keep every value exactly, through stored bytes."""
    seen = carried(place, VALUES[name])
    assert {way: exactly(value) for way, value in seen.items()} == dict.fromkeys(WAYS, exactly(VALUES[name]))


@pytest.mark.parametrize(
    "value", [MARKERS, [MARKERS, {"nested": MARKERS}], list(MARKERS)], ids=["dict", "deep", "names"]
)
def test_user_data_with_the_marker_names_of_a_codec_is_unchanged(place, value):
    """Case 44: no key or text of a user is taken for one of the codec's own marks."""
    seen = carried(place, value)
    assert {way: exactly(found) for way, found in seen.items()} == dict.fromkeys(WAYS, exactly(value))


# 45 ------------------------------------------------------------------------------------------------------------------

#: Which rows hold bytes of the newest checkpoint, by table.
DAMAGED = {
    "rehydrate_record": "id IN (SELECT record FROM rehydrate_live)",
    "rehydrate_checkpoint": "seq = (SELECT max(seq) FROM rehydrate_checkpoint)",
    "rehydrate_run": "run_id = 'r'",
}


def execute(path, statement, *values):
    """Execute one statement on the file with SQLite alone and return its cursor's rows, or the number it changed."""
    database = sqlite3.connect(path)
    try:
        with database:
            cursor = database.execute(statement, values)
            return cursor.fetchall() if cursor.description else cursor.rowcount
    finally:
        database.close()


def damage(path, table, change):
    """Change the bytes of every third row of the newest checkpoint in turn; yields after each, then puts it back."""
    (column,) = [row[1] for row in execute(path, f"PRAGMA table_info({table})") if row[2] == "BLOB"]
    rows = execute(path, f"SELECT rowid, {column} FROM {table} WHERE {DAMAGED[table]} AND {column} IS NOT NULL")
    assert rows
    for number, data in rows[::3]:
        execute(path, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", change(data), number)
        yield
        execute(path, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", data, number)


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


CHANGES = {
    "flipped": flipped,
    "cut": lambda data: data[:-1],
    "emptied": lambda data: b"",
    "longer": lambda d: d + b"\0",
}


def paused(place):
    """Leave a run with a pause at depth one and a half-filled past in the place's file; return its head's id."""
    result = run(asking_child([]), "x", run_id="r", checkpoint_storage=place.store)
    place.close()
    return result.checkpoint_id


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("table", DAMAGED)
def test_damage_to_the_newest_checkpoint_is_an_error_that_names_it(file_place, table, change):
    """Case 45: whichever row of the head is damaged, by id or as "latest", the call raises and uses nothing older."""
    head = paused(file_place)
    for _ in damage(file_place.path, table, CHANGES[change]):
        for reference in ({"checkpoint": head}, {"checkpoint": "latest", "run_id": "r"}):
            log = []
            store = file_place.reopen()
            with pytest.raises(CheckpointCorruptError) as caught:
                run(asking_child(log), "y", on_pending="keep", checkpoint_storage=store, **reference)
            file_place.close()
            assert log == []
            assert "'r'" in str(caught.value) or head in str(caught.value)
    store = file_place.reopen()
    assert run(asking_child([]), checkpoint=head, checkpoint_storage=store).checkpoint_id == head


@pytest.mark.parametrize("statement", [
    "DELETE FROM rehydrate_live WHERE key = (SELECT max(key) FROM rehydrate_live)",
    "DELETE FROM rehydrate_record WHERE id = (SELECT max(record) FROM rehydrate_live)",
    "DELETE FROM rehydrate_checkpoint WHERE seq = (SELECT max(seq) FROM rehydrate_checkpoint)",
])  # fmt: skip
def test_a_lost_row_of_the_newest_checkpoint_is_an_error(file_place, statement):
    """Case 45: a checkpoint of which a row is gone is damaged, and the one before it is not taken instead."""
    paused(file_place)
    assert execute(file_place.path, statement) == 1
    log = []
    with pytest.raises(CheckpointCorruptError):
        run(asking_child(log), run_id="r", checkpoint="latest", checkpoint_storage=file_place.reopen())
    assert log == []


def test_every_flipped_byte_of_an_exported_checkpoint_is_reported():
    """Case 45: for a checkpoint that is handed around as bytes, any changed byte and any cut is an error."""
    data = run(asking_child([]), "x").checkpoint.to_bytes()
    for index in range(0, len(data), 7):
        with pytest.raises(CheckpointCorruptError):
            WorkflowCheckpoint.from_bytes(data[:index] + bytes([data[index] ^ 0x10]) + data[index + 1 :])
        with pytest.raises(CheckpointCorruptError):
            WorkflowCheckpoint.from_bytes(data[:index])


# 46 ------------------------------------------------------------------------------------------------------------------


class TurnedClock:
    """A clock that gives the times it was given, the last one for ever."""

    def __init__(self, *times):
        self.times = list(times)

    def time(self):
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


@dataclass(frozen=True)
class Timed:
    """A workflow whose runs read another clock."""

    program: object
    checkpoint_storage: object


HOUR = 3600.0
NOON = 1_800_000_000.0
CLOCKS = {
    "goes back an hour": [NOON, NOON + 1, NOON - HOUR],
    "goes back each time": [NOON - number * HOUR for number in range(60)],
    "stands still": [NOON],
}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("times", CLOCKS.values(), ids=CLOCKS)
def test_the_latest_checkpoint_is_the_one_that_was_made_last(tmp_path, kind, times):
    """Case 46: within one millisecond, or while the clock goes back, "latest" is the later one of two."""
    clock = TurnedClock(*times)
    place = Place(kind, tmp_path, clock=clock)
    seen = []
    workflow = keeping(seen)
    timed = Timed(replace(workflow.program, clock=clock), place.store)
    ids = []
    for turn in (1, 2, 3):
        options = {"run_id": "r"} if turn == 1 else {"run_id": "r", "checkpoint": "latest"}
        result = asyncio.run(Runner(timed).run(turn, **options))
        assert result.turn == turn
        ids.append(result.checkpoint_id)
    history = place.history("r")
    place.close()
    assert [h.checkpoint_id for h in history if h.status is Status.IDLE] == ids
    assert [header.seq for header in history] == list(range(len(history)))
    assert [header.created for header in history] != sorted({header.created for header in history})


# 48, 50 --------------------------------------------------------------------------------------------------------------


def written(commits):
    """Return the bytes of the records of each commit after the claim."""
    return [sum(len(put.key) + len(put.data) for put in commit.puts) for commit in commits[1:]]


def pipeline(length):
    """n000 → n001 → …, each with one small write."""

    def node(number):
        @executor(id=f"n{number:03d}")
        async def pass_on(value: int, ctx: WorkflowContext) -> int:
            await ctx.set_state("last", number % 10)
            return value

        return pass_on

    nodes = [node(number) for number in range(length)]
    return WorkflowBuilder("pipeline", nodes[0], max_supersteps=length).add_chain(nodes).build()


def test_engine_data_of_a_superstep_does_not_grow_with_the_nodes(place):
    """Case 48: a save in the middle of 300 nodes writes as much as one in the middle of 30."""
    sizes = {}
    for length in (30, 300):
        assert run(pipeline(length), 7, checkpoint_storage=place.store).outputs == [7]
        sizes[length] = written(place.store.commits)
        place.store.commits.clear()
    assert max(sizes[300]) <= max(sizes[30]) + 16
    assert sizes[300][290] <= sizes[300][10] + 16


def test_a_constant_in_state_is_stored_once(place):
    """Case 50: 100 supersteps over a state with a constant 100 KB string write that string once."""
    big = "constant" * 12_800

    @executor(id="count")
    async def count(number: int, ctx: WorkflowContext[int, int]) -> None:
        if number == 0:
            await ctx.set_state("big", big)
        assert len(ctx.get_state("big", big)) == len(big)
        if number < 99:
            await ctx.send_message(number + 1)
        else:
            await ctx.yield_output(number)

    workflow = WorkflowBuilder("constant", count).add_edge(count, count).build()
    assert run(workflow, 0, checkpoint_storage=place.store).outputs == [99]
    puts = [put for commit in place.store.commits for put in commit.puts]
    assert len(place.store.commits) >= 101
    assert sum(big.encode() in put.data for put in puts) == 1
    assert sum(written(place.store.commits)) < len(big) + 100 * 1000


def test_a_list_that_grows_costs_its_growth(place):
    """Section 3.4: each append writes what was appended, not the list."""
    element = "x" * 1000

    @executor(id="grow")
    async def grow(number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.update_state("log", element)
        if number < 60:
            await ctx.send_message(number + 1)
        else:
            await ctx.yield_output(len(ctx.get_state("log")))

    workflow = WorkflowBuilder("growing", grow, reducers={"log": append}).add_edge(grow, grow).build()
    assert run(workflow, 1, checkpoint_storage=place.store).outputs == [60]
    assert sum(written(place.store.commits)) < 3 * 60 * len(element)


# 49 ------------------------------------------------------------------------------------------------------------------


def test_a_waiting_message_of_a_renamed_node_is_listed(place):
    """Case 49: node "three" was renamed while a message waits for it; the error says so and nothing runs."""
    error = failed(three([], broken={"three"}), 1, run_id="r", checkpoint_storage=place.store)
    log = []
    chain = [adder(name, 1, log) for name in ("one", "two", "drei")]
    renamed = WorkflowBuilder("three", chain[0]).add_chain(chain).build()
    with pytest.raises(GraphChangedError) as caught:
        run(renamed, checkpoint=error.result, checkpoint_storage=place.reopen())
    waiting = [line for line in caught.value.differences if "three" in line and "waits" in line]
    assert len(waiting) == 1
    assert waiting[0] in str(caught.value)
    assert log == []
    assert place.head("r").checkpoint_id == error.result.checkpoint_id


def test_an_open_request_of_a_renamed_node_is_listed_with_its_path(place):
    """Case 49: the same for a question that an inner executor has open."""
    first = run(asking_child([]), "x", run_id="r", checkpoint_storage=place.store)

    @executor(id="other")
    async def other(text: str) -> str:
        return text

    child = WorkflowBuilder("child", other).build()
    ask = WorkflowExecutor(child, id="ask")
    told = adder_of_text("told")
    renamed = WorkflowBuilder("asking", ask).add_edge(ask, told).build()
    with pytest.raises(GraphChangedError) as caught:
        run(renamed, checkpoint=first, responses=answers(first, "yes"), checkpoint_storage=place.reopen())
    assert [line for line in caught.value.differences if "ask#1/asker" in line and "waits" in line]


def test_what_a_join_holds_for_a_renamed_node_is_listed(place):
    """Case 49: a message that a half-filled join holds waits for its target, too."""
    run(uneven_join([]), 1, run_id="r", checkpoint_storage=place.store)
    middle = place.checkpoints_with("r", "join")[-1]
    s, a, b1, b2 = (adder(name, 0, []) for name in ("s", "a", "b1", "b2"))

    @executor(id="union")
    async def union(numbers: list[int]) -> str:
        return f"{numbers}"

    builder = WorkflowBuilder("uneven", s).add_fan_out_edges(s, [a, b1]).add_edge(b1, b2)
    renamed = builder.add_fan_in_edges([a, b2], union).build()
    with pytest.raises(GraphChangedError) as caught:
        run(renamed, checkpoint=middle, fork=True, checkpoint_storage=place.store)
    assert [line for line in caught.value.differences if "join" in line and "waits" in line]


def adder_of_text(id):
    @executor(id=id)
    async def pass_on(text: str) -> str:
        return text

    return pass_on
