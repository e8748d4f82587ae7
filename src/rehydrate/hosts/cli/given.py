"""What a person gives on a command line as JSON: a message, and answers by the ids of their requests.

The text stands in the command itself, in a file (`@FILE`), or comes from standard input (`-`). It reads no types.
"""

from __future__ import annotations

import functools
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, cast

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
_STREAM_FILES: Final = ("@/dev/stdin", "@/dev/fd/0", "@/proc/self/fd/0")
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


def _given_text(word: str) -> bytes:
    """Return the text that a word stands for. Raises `WrongCallError` for a file that cannot be read."""
    if _is_standard_input(word):
        return standard_input_text("Write @FILE for the text of a file.").removeprefix(BOM_UTF8)
    if not word.startswith("@"):
        return word.encode("utf-8", "surrogateescape")
    try:
        return Path(word[1:]).read_bytes().removeprefix(BOM_UTF8)  # as editors of Windows write it
    except OSError as error:
        raise WrongCallError(
            f"{word[1:]!r} cannot be read: {error.strerror}.", "Write @FILE for the text of a file."
        ) from error


class GivenInput(NamedTuple):
    """The texts of a message and of answers by request id."""

    message: bytes | None
    answers: dict[str, JsonAnswer]

    def message_for(self, workflow: Workflow) -> object:
        """Return the message, of a type of this workflow. Raises `MessageShapeError`."""
        return None if self.message is None else workflow.parse(self.message)

    @property
    def responses(self) -> dict[str, JsonAnswer] | None:
        """The answers, if there are any."""
        return self.answers or None


def given_input(message: str | None, answers: Iterable[str] = ()) -> GivenInput:
    """Return the texts that words stand for, before the event loop runs, as Ctrl-C could not end a read in it.

    Raises `WrongCallError` where a word is no answer, a request has two, or two words stand for standard input.
    """
    words = _answer_words(answers)
    if sum(map(_is_standard_input, [message, *words.values()])) > 1:  # the second would get nothing
        raise WrongCallError("standard input is named twice.", "Name it once, and write @FILE for the text of a file.")
    text = None if message is None else _given_text(message)
    return GivenInput(text, {request_id: JsonAnswer(_given_text(word)) for request_id, word in words.items()})


def _is_standard_input(word: str | None) -> bool:
    """Tell whether a word stands for standard input, which has names in the file system as well."""
    return word == STREAM or word in _STREAM_FILES


def _answer_words(words: Iterable[str]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for word in words:
        request_id, equals, text = word.partition("=")
        if not (request_id and equals):
            raise WrongCallError(f"{word!r} is no answer.", "Write ID=JSON, such as 0123abcd=true.")
        if request_id in answers:
            raise WrongCallError(f"request {request_id!r} is answered twice.", "Answer it once.")
        answers[request_id] = text
    return answers


@dataclass(frozen=True)
class Given:
    """The input of a command that goes on with a run, as words."""

    message: str | None
    answers: tuple[str, ...]
    key: str | None
    on_pending: OnPending | None
    on_unfinished: OnUnfinished

    def read(self) -> GivenInput:
        """Return the texts."""
        return given_input(self.message, self.answers)

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
