"""`rehydrate import-maf`: takes in checkpoint files of Microsoft Agent Framework."""

from __future__ import annotations

from collections.abc import Mapping

import click

from rehydrate.api.workflow import Workflow
from rehydrate.errors import UnknownTypeError, WrongCallError
from rehydrate.model.printable import printable
from rehydrate.service.agent_framework.importing import (
    AgentFrameworkImport,
    ImportedAgentRun,
    import_agent_framework,
)
from rehydrate.service.agent_framework.values import TypeMap
from rehydrate.service.service import Service

from .endings import Ending
from .output import Output
from .session import Session, on_runs


@click.command("import-maf")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="MODULE:NAME=NAME",
    help="A type of theirs, and its name in the workflow; without a name its fields are kept as a dict.",
)
@click.option(
    "--leave-out", multiple=True, metavar="WHAT", help="state:KEY, executor:ID, state, executors, messages, joins."
)
@click.option("--every", is_flag=True, help="Every checkpoint as a run, not only the newest of each run.")
@click.option("--skip-refused", is_flag=True, help="Take in the others where a file is refused.")
@on_runs
def import_maf(
    session: Session,
    folder: str,
    types: tuple[str, ...],
    leave_out: tuple[str, ...],
    every: bool,
    skip_refused: bool,
) -> int:
    """Take in the checkpoint files that agent-framework-core wrote into a folder, as runs of the workflow.

    Their open questions can be answered then, as those of any run. Nothing in the files is executed.
    """
    workflow = session.app.workflow()
    given = _types(workflow, types)

    async def work(service: Service) -> int:
        done = await import_agent_framework(
            folder,
            workflow,
            storage=service.storage,
            types=given,
            leave_out=leave_out,
            every=every,
            skip_refused=skip_refused,
        )
        session.output.document(_document(done))
        _tell(session.output, done)
        return Ending.DONE

    return session.run(work, create=True)


def _types(workflow: Workflow, given: tuple[str, ...]) -> TypeMap:
    found: dict[str, type | None] = {}
    for text in given:
        theirs, equals, ours = text.partition("=")
        if not equals or ":" not in theirs:
            raise WrongCallError(f"--type {text!r} is not of the form MODULE:NAME=NAME.", "Give both names.")
        try:
            found[theirs] = workflow.program.codec.registry.type_of(ours) if ours else None
        except UnknownTypeError as error:
            names = ", ".join(workflow.program.codec.registry.names())
            raise WrongCallError(f"the workflow has no type {ours!r}.", f"It has {names}.") from error
    return found


def _document(done: AgentFrameworkImport) -> Mapping[str, object]:
    runs = [
        {
            "run_id": run.run_id,
            "file": run.file,
            "status": run.checkpoint.status.value,
            "questions": run.questions,
            "left_out": run.left_out,
            "stored": run.stored,
        }
        for run in done.runs
    ]
    return {"runs": runs, "passed_over": done.passed_over, "refused": done.refused}


def _tell(output: Output, done: AgentFrameworkImport) -> None:
    for run in done.runs:
        output.line(printable(_told(run)))
        for theirs, ours in run.questions.items():
            output.line(f"  request  {ours} (there {printable(theirs)})")
        for what in run.left_out:
            output.line(f"  left out {printable(what)}")
    for file, why in done.passed_over.items():
        output.line(printable(f"passed over {file}: {why}"))
    for file, why in done.refused.items():
        output.line(printable(f"refused {file}: {why}"))


def _told(run: ImportedAgentRun) -> str:
    stored = "" if run.stored else ", which was there already"
    return f"run {run.run_id} from {run.file}: {run.checkpoint.status.value}{stored}"
