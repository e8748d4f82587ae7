"""`rehydrate graph`: the drawing of a workflow, in a format to be shown elsewhere or as text for a terminal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final, get_args

import click

from rehydrate.errors import WrongCallError
from rehydrate.graph.drawing import DrawingFormat

from .endings import Ending
from .session import Session, on_runs

FORMATS: Final[tuple[DrawingFormat, ...]] = get_args(DrawingFormat)


@click.command()
@click.option(
    "--format", "-f", "drawing", type=click.Choice(FORMATS), default="text", show_default=True, help="The format."
)
@click.option("--output", "-o", metavar="FILE", type=click.Path(path_type=Path), help="Write it there.")
@on_runs
def graph(session: Session, drawing: DrawingFormat, output: Path | None) -> int:
    """Draw a workflow with all that is nested in it; no store is needed. With --json: describe it."""
    workflow = session.app.workflow()
    session.output.document(asdict(workflow.describe()))
    text = workflow.draw(drawing)
    if output is None:
        session.output.line(text.removesuffix("\n"))
        return Ending.DONE
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise WrongCallError(f"{str(output)!r} cannot be written: {error.strerror}.", "Name another file.") from error
    session.output.say(f"The drawing of {workflow.name} is in {output}.")
    return Ending.DONE
