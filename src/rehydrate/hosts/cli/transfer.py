"""`rehydrate export` and `import`: a whole run as one file, from one store to another."""

from __future__ import annotations

import io
from dataclasses import replace

import click

from rehydrate.errors import CheckpointCorruptError, RehydrateError, WrongCallError
from rehydrate.model.printable import printable
from rehydrate.service.service import Service
from rehydrate.service.transfer import ExportedRun, ReadRun, adopt_run, export_run, read_run

from .completion import complete_run
from .endings import Ending, ending_of_error
from .session import Session, on_runs
from .standard_input import STREAM, standard_input


@click.command("export")
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.argument("file", metavar="FILE")
@on_runs
def export_command(session: Session, run_id: str, file: str) -> int:
    """Write a run with all its checkpoints, events and names into a file, or to standard output (-)."""
    if file == STREAM and session.output.as_json:
        raise WrongCallError("standard output cannot be the file and have JSON.", "Name a file, or leave --json out.")

    async def work(service: Service) -> int:
        if file != STREAM:
            return _told(session, await export_run(service.storage, run_id, file), "exported")
        whole = io.BytesIO()
        told = await export_run(service.storage, run_id, whole)
        session.output.raw(whole.getvalue())
        session.output.note(printable(f"exported {told}"))
        return Ending.DONE

    return session.run(work, needs_app=False)


@click.command("import")
@click.argument("file", metavar="FILE")
@on_runs
def import_command(session: Session, file: str) -> int:
    """Take the run of a file, or of standard input (-), into a store: all of it or nothing."""
    try:
        read = _read(file)
    except CheckpointCorruptError as error:  # of the file: the store has nothing to do with it
        replace(session.output, advise=_export_again).error(error)
        return ending_of_error(error)

    async def work(service: Service) -> int:
        return _told(session, await adopt_run(service.storage, read), "imported")

    return session.run(work, needs_app=False, create=True)


def _export_again(error: RehydrateError) -> str:
    del error
    return "Nothing was taken in. Look whether it is the right file, or export the run again: rehydrate export RUN FILE"


def _read(file: str) -> ReadRun:
    """Read a file; outside of the event loop, as Ctrl-C could not end a read in it."""
    if file != STREAM:
        return read_run(file)
    with standard_input("Name a file.") as stream:
        return read_run(stream)


def _told(session: Session, told: ExportedRun, done: str) -> int:
    session.output.document({
        "run_id": told.run_id,
        "workflow": told.workflow,
        "checkpoint_id": told.checkpoint_id,
        "status": told.status.value,
        "checkpoints": told.checkpoints,
        "size": told.size,
    })  # fmt: skip
    session.output.line(printable(f"{done} {told}"))
    return Ending.DONE
