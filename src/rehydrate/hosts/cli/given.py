"""What a person gives on a command line as JSON: a message, and answers by the ids of their requests.

The text stands in the command itself, in a file (`@FILE`), or comes from standard input (`-`). It reads no types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import click

from rehydrate.api.workflow import Workflow
from rehydrate.engine.inputs import OnPending, OnUnfinished
from rehydrate.errors import WrongCallError
from rehydrate.runtime.requests import JsonAnswer
from rehydrate.service.service import VerbOptions

from .completion import complete_answer
from .standard_input import STREAM, standard_input_text

message_option: Final = click.option(
    "--message", "-m", metavar="JSON", help="A message, as JSON; @FILE or - for the text of a file or of stdin."
)
answer_option: Final = click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="ID=JSON",
    shell_complete=complete_answer,
    help="An answer to a request; may be repeated.",
)
key_option: Final = click.option("--key", metavar="KEY", help="What is given twice with one key is done once.")
_policies: Final = (
    click.option(
        "--on-pending", type=click.Choice(["keep", "cancel", "reject"]), help="What a message does to open requests."
    ),
    click.option(
        "--on-unfinished",
        type=click.Choice(["finish", "discard", "reject"]),
        default="finish",
        show_default=True,
        help="What a message does to unfinished work.",
    ),
)


def given_text(word: str) -> bytes:
    """Return the text that a word stands for. Raises `WrongCallError` for a file that cannot be read."""
    if word == STREAM:
        return standard_input_text("Write @FILE for the text of a file.")
    if not word.startswith("@"):
        return word.encode("utf-8", "surrogateescape")
    try:
        return Path(word[1:]).read_bytes()
    except OSError as error:
        raise WrongCallError(
            f"{word[1:]!r} cannot be read: {error.strerror}.", "Write @FILE for the text of a file."
        ) from error


def given_answers(words: Iterable[str]) -> dict[str, JsonAnswer]:
    """Return answers by request id. Raises `WrongCallError` where a word is none, or a request has two."""
    answers: dict[str, JsonAnswer] = {}
    for word in words:
        request_id, equals, text = word.partition("=")
        if not (request_id and equals):
            raise WrongCallError(f"{word!r} is no answer.", "Write ID=JSON, such as 0123abcd=true.")
        if request_id in answers:
            raise WrongCallError(f"request {request_id!r} is answered twice.", "Answer it once.")
        answers[request_id] = JsonAnswer(given_text(text))
    return answers


@dataclass(frozen=True)
class Given:
    """The input of a command that goes on with a run, as words; read when the run and its workflow are known."""

    message: str | None
    answers: tuple[str, ...]
    key: str | None
    on_pending: OnPending | None
    on_unfinished: OnUnfinished

    @functools.cached_property
    def text(self) -> bytes | None:
        """The text of the message; asked for before the event loop runs, as Ctrl-C could not end a read in it."""
        return None if self.message is None else given_text(self.message)

    def message_for(self, workflow: Workflow) -> object:
        """Return the message, of a type of this workflow. Raises `MessageShapeError`."""
        return None if self.text is None else workflow.parse(self.text)

    def responses(self) -> dict[str, JsonAnswer] | None:
        """Return the answers."""
        return given_answers(self.answers) or None

    def options(self, *, takeover: bool = False) -> VerbOptions:
        """Return what is said of the call beside its input."""
        return {
            "idempotency_key": self.key,
            "on_pending": self.on_pending,
            "on_unfinished": self.on_unfinished,
            "takeover": takeover,
        }


def takes_input(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options for input, and what was given with them as its argument `given`."""

    @functools.wraps(command)
    def wrapped(*args: object, **kwargs: object) -> int:
        given = Given(
            message=cast("str | None", kwargs.pop("message")),
            answers=cast("tuple[str, ...]", kwargs.pop("answers")),
            key=cast("str | None", kwargs.pop("key")),
            on_pending=cast("OnPending | None", kwargs.pop("on_pending")),
            on_unfinished=cast("OnUnfinished", kwargs.pop("on_unfinished")),
        )
        return command(*args, given=given, **kwargs)

    for option in reversed((message_option, answer_option, *_policies, key_option)):
        wrapped = option(wrapped)
    return wrapped
