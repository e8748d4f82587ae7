"""Answers: how they close their requests, and how what waited for them goes on.

The same for answers from outside and for those that an executor of the parent gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from rehydrate.ids import ancestors, depth_of, order_key
from rehydrate.model.records import InboxRecord, ReceiptRecord

from .change import Change
from .inputs import Answer
from .joins import end_deadlock
from .passes import answer_pass, each_once, put_in_inbox
from .receipts import leave_receipt
from .requests import close_request
from .run import Draft
from .steps import Arrival, open_step
from .timing import resume_timer
from .waiting_passes import take_due

#: What arrives from outside of a scope, by scope.
Arrivals: TypeAlias = dict[str, list[Arrival]]
#: What is taken before messages: answers, and passes that something has come back for.
FIRST: Final = frozenset({"answer", "pass"})


def in_order(answers: Iterable[Answer]) -> list[Answer]:
    """Return answers by the names of their requests, whatever their order in the call."""
    return sorted(answers, key=lambda answer: (order_key(answer.path), order_key(answer.name)))


def take_answer(change: Change, answer: Answer) -> Arrival:
    """Close a request: it leaves a receipt, and its answer is in flight."""
    draft = change.draft
    request = close_request(draft, answer.path, answer.name)
    leave_receipt(change, answer.path, answer.name, ReceiptRecord("answered", draft.turn().number))
    if change.graph_at(answer.path).body is not None:
        return answer_pass(change, answer.path, request, answer.value)
    return Arrival(request.executor, answer.value, request.trail, "answer", answer.name, request.handler, request.data)


def take_inbox(draft: Draft, path: str) -> list[Arrival]:
    """Take what came from outside while a superstep ran: answers by name, then messages in their order."""
    found = draft.items(path, "inbox")
    records: list[InboxRecord] = [record for _, record in sorted(found, key=lambda item: int(item[0]))]
    records.sort(key=lambda record: (record.kind not in FIRST, order_key(record.name)))
    draft.clear(path, "inbox")
    return [Arrival(r.executor, r.payload, r.trail, r.kind, r.name, r.handler, r.data) for r in records]


def wake(change: Change, arrivals: Arrivals, woken: list[str]) -> None:
    """Give every scope with arrivals, and every one above, a superstep; an unfinished one takes them at its barrier."""
    paths = set(arrivals) | set(woken)
    paths |= {above for path in paths for above in ancestors(path)}
    # Deepest first: a shared scope takes the answers that it waits for before a message that comes with them.
    for path in sorted(sorted(paths), key=depth_of, reverse=True):
        here = each_once(arrivals.get(path, []))
        here.sort(key=lambda arrival: (arrival.kind not in FIRST, order_key(arrival.name)))
        if change.draft.step(path) is None:
            if path and change.graph.is_timed:
                resume_timer(change, path)
            for item in here:
                if item.kind == "pass":
                    take_due(change, path, item.name)
            open_step(change, path, change.draft.scope(path), here)
            continue
        for item in here:
            put_in_inbox(change.draft, path, item)
            change.barriers = True
        if here:
            end_deadlock(change, path)
