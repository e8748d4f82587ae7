"""`Session`: what one command works on: the user's workflows, the store, and where it prints.

Everything is opened when it is asked for and closed at the end of `run`. It must not know any command.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, cast

import click
from click.core import ParameterSource

from rehydrate.errors import NoStoreError, RehydrateError, WrongCallError
from rehydrate.ports import CheckpointStorage, place_of
from rehydrate.service.service import Service

from .advice import command_text, next_action, quoted
from .app import App, load_app
from .endings import Ending, ending_of_error
from .looping import run_in_loop
from .output import Output

P = ParamSpec("P")


class StoreOpener(Protocol):
    """Opens the store that a path or a URL names; `create`: it need not be there."""

    def __call__(self, name: str, *, create: bool) -> CheckpointStorage:
        """Return the store, or raise `WrongCallError`."""
        ...


@dataclass(frozen=True)
class OtherCommand:
    """A command that is run elsewhere, with its own arguments."""

    help: str
    run: Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Wired:
    """What the command line is given from above: how stores are opened, and commands that other parts run."""

    version: str
    open_store: StoreOpener
    #: Whether the name of a store may hold a password.
    is_secret: Callable[[str], bool]
    others: Mapping[str, OtherCommand]


@dataclass(frozen=True)
class Session:
    """What was said of app and store in one command."""

    wired: Wired
    app_name: str | None
    store_name: str | None
    output: Output
    #: The words that name app and store in this command, for one that is to be suggested, as a shell reads them.
    words: tuple[str, ...] = ()

    def command(self, name: str, *more: str) -> str:
        """Return another command on the same app and store, to be typed as it stands."""
        return command_text(self.words, name, *more)

    def answering(self, request_id: str) -> str:
        """Return the command that answers a request, with a place for the app where a command that looks had none."""
        app = ("--app", "FILE.py") if self.app_name is None else ()
        return command_text((*app, *self.words), "answer", f"{request_id}=JSON")

    @functools.cached_property
    def app(self) -> App:
        """The user's file. Raises `WrongCallError` where none is named, and `AppError` where it cannot be loaded."""
        if self.app_name is None:
            raise WrongCallError(
                "no workflows are named.", "Name their file: --app FILE.py, or set REHYDRATE_APP in the environment."
            )
        return load_app(self.app_name)

    def service(self, *, needs_app: bool = True, create: bool = False) -> Service:
        """Return the service that a command speaks to; `create`: the store need not be there yet.

        Without `needs_app` an app is loaded only where its store is meant: who looks at runs needs no code of theirs.
        """
        uses_app = needs_app or (self.store_name is None and self.app_name is not None)
        app = self.app if uses_app else App("", ())
        if self.store_name is not None:
            store = self.wired.open_store(self.store_name, create=create)
        else:
            store = app.storage()
            if store is None:
                raise NoStoreError("this command")
            if not create:
                _check_is_there(store)
        if app.service is not None:
            return replace(app.service, storage=store)
        return Service(store, [named.workflow for named in app.workflows])

    def run(self, work: Callable[[Service], Awaitable[int]], *, needs_app: bool = True, create: bool = False) -> int:
        """Do the work of a command with the service, close the store, and return the exit code."""
        service = self.service(needs_app=needs_app, create=create)

        async def main() -> int:
            try:
                return await work(service)
            finally:
                await service.storage.close()

        return run_in_loop(main())


def on_runs(command: Callable[Concatenate[Session, P], int]) -> Callable[P, int]:
    """Give a command the options that all commands have, and their `Session` as first argument.

    Errors become exit codes here. Put it below `click.command` and above nothing but the command's own options.
    """

    @click.option("--app", "-a", "app_name", envvar="REHYDRATE_APP", metavar="FILE.py[:NAME]", help="The workflows.")
    @click.option("--store", "-s", "store_name", envvar="REHYDRATE_STORE", metavar="STORE", help="Path or URL.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> int:
        wired = cast("Wired", click.get_current_context().obj)
        words = tuple(_words(click.get_current_context(), wired))
        app_name, store_name = (cast("str | None", kwargs.pop(name)) for name in ("app_name", "store_name"))
        output = Output(bool(kwargs.pop("as_json")), functools.partial(next_action, words=words))
        session = Session(wired, app_name, store_name, output, words)
        try:
            # What user code prints goes to standard error, since standard output is for the result of the command.
            with contextlib.redirect_stdout(sys.stderr):
                return command(session, *args, **kwargs)
        except RehydrateError as error:
            session.output.error(error)
            return ending_of_error(error)
        except KeyboardInterrupt:
            session.output.note("interrupted")
            return Ending.INTERRUPTED

    return cast("Callable[P, int]", wrapped)


def _check_is_there(store: CheckpointStorage) -> None:
    """Raise `WrongCallError` for a store that would be made only now, as its path is mistyped or another folder's."""
    place = place_of(store)
    if place is not None and place.path is not None and not Path(place.path).exists():
        raise WrongCallError(f"there is no store {place.path!r}.", "Look at the path, or begin with a run in it.")


def _words(context: click.Context, wired: Wired) -> Iterator[str]:
    """Give the options for app and store that were typed; those of the environment hold for the next command, too.

    A store whose name may hold a password is named by the environment: what is suggested ends in logs and screens.
    """
    for name, option in (("app_name", "--app"), ("store_name", "--store")):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            word = str(context.params[name])
            secret = name == "store_name" and wired.is_secret(word)
            yield from (option, '"$REHYDRATE_STORE"' if secret else quoted(word))
