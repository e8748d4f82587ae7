"""What a handler did: its messages, outputs, requests and state writes, in the order of its calls.

Effects are facts about one invocation; they become real at the barrier. Nothing here decides where anything goes:
`routes` were decided by the runtime after the handler.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from .sealed import Items, Payload, Sealed


class Route(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One edge that takes a message: the edge's number in its graph, and the executor at its end."""

    edge: int
    target: str


#: `None`: no condition has been asked yet (one raised); a resume asks again.
Routes: TypeAlias = tuple[Route, ...] | None


class Send(msgspec.Struct, frozen=True, gc=False, tag="s", tag_field="_", array_like=True, forbid_unknown_fields=True):
    """A message to the executors behind the sender's edges."""

    value: Payload
    routes: Routes
    target: str | None = None


class Output(
    msgspec.Struct, frozen=True, gc=False, tag="o", tag_field="_", array_like=True, forbid_unknown_fields=True
):
    """A value that leaves the workflow; `routes` hold at the level where it becomes a message, empty for none."""

    value: Payload
    routes: Routes = ()


class Ask(msgspec.Struct, frozen=True, gc=False, tag="a", tag_field="_", array_like=True, forbid_unknown_fields=True):
    """A request of the outside; `handler` names the response handler that takes the answer, or the call of a functional
    workflow that waits for it.

    Where a parent intercepts it, `routes` hold at that level.
    """

    count: int
    data: Sealed
    response_type: str
    handler: str
    routes: Routes = ()


class Respond(
    msgspec.Struct, frozen=True, gc=False, tag="r", tag_field="_", array_like=True, forbid_unknown_fields=True
):
    """An answer to the intercepted request `name` of the scope at `path`."""

    path: str
    name: str
    value: Sealed


class SetState(
    msgspec.Struct, frozen=True, gc=False, tag="w", tag_field="_", array_like=True, forbid_unknown_fields=True
):
    """A state key replaced as a whole; `None` deletes it."""

    key: str
    value: Sealed | Items | None


class UpdateState(
    msgspec.Struct, frozen=True, gc=False, tag="u", tag_field="_", array_like=True, forbid_unknown_fields=True
):
    """A contribution to a state key through its reducer."""

    key: str
    value: Sealed | Items


class Pause(msgspec.Struct, frozen=True, gc=False, tag="p", tag_field="_", array_like=True, forbid_unknown_fields=True):
    """A functional workflow waits for the outside. `reads` are the values of the state keys that it has read so far,
    as it found them; `due` is when the first of its timers is up, in seconds since the epoch; `called` are its calls of
    workflows that had not come back."""

    reads: dict[str, Sealed | Items | None]
    due: float | None = None
    called: tuple[str, ...] = ()


class Again(msgspec.Struct, frozen=True, gc=False, tag="n", tag_field="_", array_like=True, forbid_unknown_fields=True):
    """A functional workflow begins anew with a message of its own, and with nothing remembered."""

    value: Sealed


Effect: TypeAlias = Send | Output | Ask | Respond | SetState | UpdateState | Pause | Again
#: For `isinstance`, which takes a tuple three times as fast as a union.
STATE_EFFECTS: Final = (SetState, UpdateState)
ROUTED_EFFECTS: Final = (Send, Output, Ask)
FailureKind: TypeAlias = Literal["handler", "conflict", "routing", "merge", "lost", "deadlock", "response", "timeout"]


class Failure(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Why an invocation failed for good: class name and text of its exception, and its traceback's text.

    `facts` are the fields of an error that the engine found: key and writers of a conflict, the joins of a deadlock.
    """

    kind: FailureKind
    type: str
    text: str
    trace: str = ""
    facts: tuple[str, ...] = ()
