"""What is shown of a run while it runs: lines of text, JSON, and the drawing in a terminal."""

import io
import json
from dataclasses import dataclass
from typing import get_args

import pytest
from rich.cells import cell_len
from rich.console import Console

from rehydrate import WorkflowBuilder, executor
from rehydrate.hosts.cli.activity import Activity
from rehydrate.hosts.cli.drawing import Drawing
from rehydrate.hosts.cli.output import Output
from rehydrate.hosts.cli.told import event_document, event_line, plain_value
from rehydrate.model import events
from rehydrate.model.checkpoint import Status
from rehydrate.model.effects import Failure
from rehydrate.model.events import (
    AttemptFailed,
    Emitted,
    Event,
    EventsDropped,
    InvocationFailed,
    InvocationStarted,
    MessageDropped,
    OfferRefused,
    OfferTaken,
    OutputYielded,
    RequestOpened,
    RequestsCancelled,
    RequestsKept,
    ScopeEnded,
    ScopeStarted,
    StatusChanged,
    StepFinished,
    StepStarted,
    SuperstepCompleted,
    SuperstepStarted,
    TurnStarted,
    WorkDiscarded,
)
from rehydrate.model.printable import printable


@dataclass(frozen=True)
class Claim:
    id: str


class Unstorable:
    """No message, and stored nowhere."""

    def __str__(self) -> str:
        return "half\x1b[31m"


@executor(id="take")
async def take(claim: Claim) -> Claim:
    return claim


CODEC = WorkflowBuilder("taking", take).build().program.codec
BROKEN = Failure("handler", "ValueError", "no\nsuch account")
AT = {"path": "review#1", "executor_id": "assess"}

TOLD: list[tuple[Event, str | None]] = [
    (TurnStarted(turn=2), "turn 2 started"),
    (TurnStarted(turn=2, continuation=True), "turn 2 goes on"),
    (SuperstepStarted(**AT), None),
    (SuperstepCompleted(**AT), None),
    (ScopeStarted(**AT), "review#1: sub-workflow started"),
    (ScopeEnded(**AT), "review#1: sub-workflow ended"),
    (OutputYielded(**AT, data=Claim("c")), 'review#1/assess: output {"$type":"Claim","id":"c"}'),
    (OutputYielded(data="x" * 1000), f"output {'x' * 199}…"),
    (RequestOpened(**AT, request_id="q", data="Pay?", response_type="bool"), "review#1/assess: asks Pay? (request q)"),
    (RequestsKept(request_ids=("a", "b")), "keeps 2 open request(s)"),
    (RequestsCancelled(request_ids=("a",)), "withdraws 1 open request(s)"),
    (OfferTaken(number=1, key="k"), "takes the offer k"),
    (OfferRefused(number=1, key="k", code="c", text="too late"), "refuses the offer k: too late"),
    (WorkDiscarded(what=("a", "b")), "discards 2 piece(s) of work: a, b"),
    (MessageDropped(**AT, type="Claim"),
     "review#1/assess: a message of type Claim went nowhere: every condition declined it"),
    (InvocationFailed(**AT, failure=BROKEN), "review#1/assess: failed: ValueError: no\\nsuch account"),
    (StatusChanged(status=Status.IDLE), "IDLE"),
    (InvocationStarted(**AT), "review#1/assess: started"),
    (AttemptFailed(**AT, attempt=1, failure=BROKEN, again=2.0),
     "review#1/assess: attempt 1 failed: ValueError: no\\nsuch account; again in 2.0 s"),
    (StepStarted(executor_id="f", step="pay", attempt=2), "f: step pay started, attempt 2"),
    (StepFinished(executor_id="f", step="pay"), None),
    (Emitted(**AT, data=Unstorable()), "review#1/assess: tells half\\x1b[31m"),
    (EventsDropped(count=3), "3 event(s) were not told, as they came too fast"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "line"), TOLD)
def test_an_event_as_a_line(event, line):
    """What is worth a line has one, without anything that a terminal would obey; all have a form in JSON."""
    assert event_line(event, CODEC) == line
    document = Output(as_json=True, results=io.StringIO())
    document.document(event_document(event, CODEC))
    told = json.loads(document.results.getvalue())
    assert (told["event"], told["path"]) == (type(event).__name__, event.path)


def test_every_kind_of_event_is_told_here():
    """A new one has to be given its line."""
    assert {type(event) for event, _ in TOLD} == set(get_args(events.Event))


def shown(activity: Activity) -> list[str]:
    """The lines with their depths as dots."""
    return [f"{'.' * line.depth}{line.label}" for line in activity.lines()]


def test_active_executors_stand_below_their_scopes_until_their_superstep_ends():
    """Invocations of one executor are one line with a number; a scope that ends takes all below it along."""
    activity = Activity(0.0)
    for event in (
        TurnStarted(turn=1),
        InvocationStarted(executor_id="intake"),
        SuperstepCompleted(),
        ScopeStarted(path="review#1", executor_id="review"),
        InvocationStarted(path="review#1", executor_id="assess"),
        InvocationStarted(path="review#1", executor_id="assess"),
        ScopeStarted(path="review#1/legal#1", executor_id="legal"),
        InvocationStarted(path="review#1/legal#1", executor_id="read"),
        InvocationStarted(executor_id="log"),
    ):
        activity.take(event, 1.0)
    assert shown(activity) == ["log", "review#1", ".assess x2", ".legal#1", "..read"]
    activity.take(SuperstepCompleted(path="review#1/legal#1"), 2.0)
    assert shown(activity) == ["log", "review#1", ".assess x2"]
    activity.take(ScopeEnded(path="review#1", executor_id="review"), 3.0)
    assert shown(activity) == ["log"]
    activity.take(StatusChanged(status=Status.IDLE), 4.0)
    assert shown(activity) == []


def test_steps_attempts_and_progress_stand_with_their_executor():
    """Steps that run at once are counted; what a handler tells and when it is tried again is a note."""
    activity = Activity(0.0)
    at = {"executor_id": "f", "live": True}
    for event in (
        InvocationStarted(**at),
        StepStarted(**at, step="pay", attempt=1),
        StepStarted(**at, step="pay", attempt=1),
        StepStarted(**at, step="ask", attempt=1),
        StepFinished(**at, step="ask"),
    ):
        activity.take(event, 1.0)
    assert shown(activity) == ["f", ".pay x2"]
    activity.take(AttemptFailed(**at, step="pay", attempt=1, failure=BROKEN, again=2.0), 2.0)
    assert shown(activity) == ["f", ".pay"]
    assert next(activity.lines()).note == "attempt 1 failed, again in 2 s"
    activity.take(Emitted(**at, data="half"), 3.0)
    assert next(activity.lines()).note == "half"


def test_an_executor_that_is_tried_again_is_one_line_and_not_counted_twice():
    """Its next attempt begins as an invocation does; one beside it is another."""
    activity = Activity(0.0)
    at = {"executor_id": "f", "live": True}
    activity.take(InvocationStarted(**at), 1.0)
    activity.take(AttemptFailed(**at, attempt=1, failure=BROKEN, again=4.0), 2.0)
    (line,) = activity.lines()
    assert (line.label, line.note) == ("f", "attempt 1 failed, again in 4 s")
    activity.take(InvocationStarted(**at), 6.0)
    (line,) = activity.lines()
    assert (line.label, line.since, line.note) == ("f", 1.0, "")
    activity.take(InvocationStarted(**at), 7.0)
    assert shown(activity) == ["f x2"]


def test_what_has_no_text_is_no_reason_to_stop_looking():
    """What an executor tells may be of any class, also of one whose text cannot be made."""

    class Textless:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    activity = Activity(0.0)
    at = {"executor_id": "f", "live": True}
    activity.take(InvocationStarted(**at), 1.0)
    activity.take(Emitted(**at, data=Textless()), 2.0)
    assert next(activity.lines()).note == "<its text could not be made: RuntimeError>"
    assert plain_value(Textless(), CODEC) == "<its text could not be made: RuntimeError>"


def test_the_drawing_fits_its_terminal():
    """No line is wider, there are not more lines than it has, and what a run tells cannot write elsewhere."""
    drawing = Drawing("flow", Console(file=io.StringIO(), width=40, height=8))
    drawing.tell(TurnStarted(run_id="run-1", turn=1))
    drawing.tell(InvocationStarted(executor_id="first", live=True))
    drawing.tell(Emitted(executor_id="first", live=True, data=Unstorable()))
    for number in range(20):
        drawing.tell(InvocationStarted(executor_id=f"executor-{number}-{'x' * 50}", live=True))
    lines = drawing.drawn(drawing._activity.began + 12.34).plain.split("\n")
    assert len(lines) == 7
    assert max(map(len, lines)) <= 40
    assert lines[0] == "flo: 0 output(s), 0 request(s)   12.3 s"
    assert lines[1].startswith(r"  first  half\x1b[31m")
    assert lines[-1] == "  and 16 more"


@pytest.mark.parametrize(
    ("encoding", "first", "second"),
    [
        ("utf-8", "審 : 0 output(s), 0 request(s)", "  審査😀  漢漢漢漢漢漢漢漢漢漢"),
        ("ascii", r"\u5: 0 output(s), 0 request(s)", r"  \u5be9\u67fb\U0001f600  \u6f"),
    ],
)
def test_the_time_stands_where_it_stands_behind_wide_letters(encoding, first, second):
    """A letter may take two cells of a line; one that the terminal cannot show is written out, and takes more."""
    drawing = Drawing("審査査", Console(file=io.TextIOWrapper(io.BytesIO(), encoding), width=40, height=8))
    drawing.tell(InvocationStarted(executor_id="審査😀", live=True))
    drawing.tell(Emitted(executor_id="審査😀", live=True, data="漢" * 40))
    lines = drawing.drawn(drawing._activity.began + 60).plain.split("\n")
    assert [cell_len(line) for line in lines] == [39, 39]
    assert lines[0] == f"{first}   60.0 s"
    assert lines[1].startswith(second)
    assert lines[1].endswith("   60.0 s")


def test_what_a_terminal_would_obey_is_written_out():
    """Escapes, carriage returns and marks of direction; letters of all languages stay."""
    assert printable("é漢 \x1b[2J\r\n\u202e") == r"é漢 \x1b[2J\r\n\u202e"


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True

    def getvalue(self) -> str:
        return self.buffer.getvalue().decode(self.encoding)


def test_a_table_is_drawn_in_a_terminal_and_lines_elsewhere():
    """Cells that look like markup are texts; piped, a tab stands between them."""
    drawn, piped = Terminal(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    for stream in (drawn, piped):
        Output(results=stream).table(["run", "turn"], [["[red]a", 1], ["b\tc", 2]])
    assert "[red]a" in drawn.getvalue()
    assert piped.getvalue() == "run\tturn\n[red]a\t1\nb\\tc\t2\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize(("width", "lists"), [("40", True), ("100", False)])
def test_an_id_is_never_folded(monkeypatch, encoding, width, lists):
    """Where a table has no room for it, what a row holds stands below each other; a letter that the terminal does not
    have is written out."""
    monkeypatch.setenv("COLUMNS", width)
    checkpoint = "0123456789abcdef" * 2
    drawn = Terminal(io.BytesIO(), encoding, write_through=True)
    Output(results=drawn).table(
        ["number", "checkpoint", "by", "reason"], [[7, checkpoint, "claim", ""], [6, "é", "", ""]]
    )
    lines = [line.rstrip() for line in drawn.getvalue().split("\n")]
    second = "é" if encoding == "utf-8" else r"\xe9"
    listed = ["number      7", f"checkpoint  {checkpoint}", "by          claim", "", "number      6"]
    assert (lines[:6] == [*listed, f"checkpoint  {second}"]) is lists
    assert any(checkpoint in line for line in lines)
