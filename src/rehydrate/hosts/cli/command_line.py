"""The command line as a whole: its commands by name, and its one call from a list of words to an exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, cast

import click

from rehydrate.errors import WrongCallError

from .cancel import cancel
from .doctor import doctor
from .endings import Ending
from .graph import graph
from .history import diff, history
from .import_maf import import_maf
from .inbox import inbox
from .offer import offer
from .output import Output
from .prune import prune
from .run import answer, fork, resume, run
from .runs import runs, show
from .session import OtherCommand, Wired
from .shells import add_shells
from .transfer import export_command, import_command
from .worker import worker

#: The commands, in the order in which help shows them.
_COMMANDS: tuple[click.Command, ...] = (
    run, resume, answer, offer, fork, cancel, worker,
    runs, show, history, diff, inbox, graph,
    export_command, import_command, import_maf, prune, doctor,
)  # fmt: skip
_NAME: Final = "rehydrate"
#: In what click says: a store that was named without its option.
_URL: Final = re.compile(r"\S+:\S*")


class _InOrder(click.Group):
    """A group that shows its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


def run_command_line(arguments: Sequence[str], wired: Wired) -> int:
    """Run a command line and return its exit code."""
    group = _InOrder(_NAME, help="Workflows that stop anywhere and wake up exactly where they were.")
    click.version_option(wired.version, prog_name=_NAME, message="%(prog)s %(version)s")(group)
    for command in _COMMANDS:
        group.add_command(command)
    for name, other in wired.others.items():
        group.add_command(_elsewhere(name, other))
    add_shells()
    try:
        code = cast(
            "int | None", group.main(list(arguments) or ["--help"], prog_name=_NAME, standalone_mode=False, obj=wired)
        )
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        usage = f"Look at: {context.command_path if context is not None else _NAME} --help"
        text = _URL.sub(lambda found: "***" if wired.is_secret(found[0]) else found[0], error.format_message())
        Output("--json" in arguments).error(WrongCallError(text, usage))
        return Ending.WRONG_CALL
    except click.Abort:
        return Ending.INTERRUPTED
    return code or Ending.DONE


def _elsewhere(name: str, other: OtherCommand) -> click.Command:
    """Return a command that hands its words on as they are."""

    @click.command(
        name,
        help=other.help,
        short_help=other.help,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def command(words: tuple[str, ...]) -> int:
        return other.run(words)

    return command
