"""What a notebook shows: a workflow, a result and a stream, and the progress of a run, whatever is in them."""

import asyncio
import builtins
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Never

import pytest

from rehydrate import (
    Executor,
    InMemoryCheckpointStorage,
    RunFailedError,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
    workflow,
)
from rehydrate.errors import MessageTypeError, WrongCallError
from rehydrate.hosts.notebook import show_progress
from rehydrate.model.events import Emitted
from rehydrate.testing import run_virtually

EVIL = "<script>alert(1)</script>&\x1b[31m\u202e"


@dataclass(frozen=True)
class Letter:
    text: str
    wait: float = 0.0


async def passed(seconds: float) -> None:
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)


class Desk(Executor):
    @handler
    async def on_letter(self, letter: Letter, ctx: WorkflowContext[Never, str]) -> None:
        ctx.set_state("read", letter.text)
        if letter.text == "bad":
            raise ValueError("no such letter")
        await passed(letter.wait)
        ctx.emit("half done")
        await passed(letter.wait)
        ctx.request_info(letter, response_type=bool)

    @response_handler
    async def on_answer(self, letter: Letter, send: bool, ctx: WorkflowContext[Never, str]) -> None:
        ctx.yield_output(letter.text)


@executor(id="take")
async def take(letter: Letter) -> Letter:
    return letter


def post() -> Workflow:
    inner = WorkflowBuilder("inner", Desk("desk")).build()
    store = InMemoryCheckpointStorage()
    builder = WorkflowBuilder("post", take, checkpoint_storage=store)
    return builder.add_edge(take, WorkflowExecutor(inner, "inner")).build()


class Cells(HTMLParser):
    """The tags of a page, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


class Place:
    """A place in a notebook: all that was shown in it, as HTML."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, thing: object) -> "Place":
        self.update(thing)
        return self

    def update(self, thing: object) -> None:
        self.shown.append(thing._repr_html_())


@workflow
async def called(text: str) -> str:
    return text


def test_a_workflow_shows_its_drawing() -> None:
    """A graph and a function, as SVG."""
    assert post()._repr_svg_() == post().draw("svg")
    assert called._repr_svg_().startswith("<svg ")


def test_a_result_shows_what_is_asked_and_what_its_scopes_hold() -> None:
    """Requests with who asks; state and where it is; outputs once there are some."""
    flow = post()
    paused = flow.run_sync(Letter("hello"), run_id="r")
    rows = Cells(paused._repr_html_()).rows
    (request,) = paused.pending_requests
    assert [request.request_id, "inner#1/desk", '{"$type":"Letter","text":"hello","wait":0.0}', "bool"] in rows
    assert ["inner#1", "state", "read", "hello"] in rows
    assert "post r" in paused._repr_html_()
    assert "IDLE_WITH_PENDING_REQUESTS" in paused._repr_html_()
    done = flow.run_sync(responses=[request.answer(True)], checkpoint=paused)
    assert Cells(done._repr_html_()).rows[:2] == [["output"], ["hello"]]


def test_nothing_that_a_run_holds_is_read_as_html() -> None:
    """Values and state are text: escaped, without control characters, and cut."""
    paused = post().run_sync(Letter(EVIL + "x" * 5000))
    page = paused._repr_html_()
    cells = Cells(page)
    assert cells.tags == {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    (state,) = [row[3] for row in cells.rows if row[1:3] == ["state", "read"]]
    assert state.startswith("<script>alert(1)</script>&\\x1b[31m\\u202exxx")
    assert len(page) < 3000
    assert "\x1b" not in page


def test_a_table_has_so_many_rows_and_says_how_many_more() -> None:
    """A run with many outputs does not fill the notebook."""

    @executor(id="many")
    async def many(number: int, ctx: WorkflowContext[Never, int]) -> None:
        for each in range(number):
            ctx.yield_output(each)

    rows = Cells(WorkflowBuilder("many", many).build().run_sync(1000)._repr_html_()).rows
    assert rows[30:32] == [["29"], ["and 970 more"]]


def test_a_stream_shows_how_its_run_stands() -> None:
    """Before it has begun, in the middle, and at its end."""

    async def main() -> list[str]:
        stream = post().run(Letter("hello", wait=5), stream=True, run_id="r")
        before, middle = stream._repr_html_(), ""
        async for event in stream:
            if isinstance(event, Emitted):
                middle = stream._repr_html_()
        return [before, middle, stream._repr_html_()]

    before, middle, end = run_virtually(main())
    assert "NOT BEGUN" in before
    assert (["would run next"] in Cells(middle).rows, "RUNNING" in middle) == (True, True)
    assert "IDLE_WITH_PENDING_REQUESTS" in end


def test_progress_is_drawn_in_one_place_and_ends_with_how_the_run_ended() -> None:
    """Each active executor below its scope, for how long, and what it last told; the cell shows the result itself."""
    place = Place()

    async def main() -> object:
        stream = post().run(Letter("hello", wait=5), stream=True, run_id="r")
        return await show_progress(stream, display=place.display)

    run_virtually(main())
    assert len(place.shown) >= 30
    in_scope = ["· desk", "4.5 s", ""]
    assert in_scope in [row for page in place.shown for row in Cells(page).rows]
    told = [row for page in place.shown for row in Cells(page).rows if row[-1] == "half done"]
    assert told
    assert place.shown[-1].endswith(">IDLE_WITH_PENDING_REQUESTS</b>, turn 1, 0 output(s), 1 request(s), 10.0 s</p>")


def test_progress_of_a_run_that_fails_ends_with_how_it_stands() -> None:
    """And the failure is raised as by the stream."""
    place = Place()

    async def main() -> None:
        await show_progress(post().run(Letter("bad"), stream=True), display=place.display)

    with pytest.raises(RunFailedError, match="no such letter"):
        run_virtually(main())
    assert "FAILED" in place.shown[-1]


def test_a_cell_that_is_interrupted_stops_its_run() -> None:
    """Nothing goes on behind a notebook whose cell has ended."""
    store, place = InMemoryCheckpointStorage(), Place()

    async def main() -> str:
        stream = post().run(Letter("hello", wait=5), stream=True, run_id="r", checkpoint_storage=store)
        cell = asyncio.ensure_future(show_progress(stream, display=place.display))
        await asyncio.wait([cell], timeout=2)
        cell.cancel()
        await asyncio.wait([cell])
        return (await store.head("r")).header.status.value

    assert run_virtually(main()) == "CANCELLED"
    assert ("CANCELLED" in place.shown[-1], "RUNNING" in place.shown[-1]) == (True, False)


def test_a_call_that_is_refused_leaves_no_run_that_seems_to_go_on() -> None:
    """The error is raised, and its name is what stays in the place."""
    place = Place()
    with pytest.raises(MessageTypeError):
        run_virtually(show_progress(post().run(7, stream=True), display=place.display))
    assert place.shown[-1] == '<p><b>a run</b> <b style="color:#4a5160">NOT BEGUN</b>, MessageTypeError</p>'


def test_the_notebook_s_own_display_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython's builtin is asked for a place that can be updated; without it the error says what else to do."""
    place = Place()
    with pytest.raises(WrongCallError, match="iterate over the stream"):
        run_virtually(show_progress(post().run(Letter("hello"), stream=True)))
    shown = lambda thing, *, display_id: place.display(thing) if display_id else None  # noqa: E731
    monkeypatch.setattr(builtins, "display", shown, raising=False)
    run_virtually(show_progress(post().run(Letter("hello"), stream=True)))
    assert "IDLE_WITH_PENDING_REQUESTS" in place.shown[-1]
