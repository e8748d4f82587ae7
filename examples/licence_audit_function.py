"""The licence audit of `rehydrate demo`, written as a function: the same report as the graph gives.

Run it: `python licence_audit_function.py`. A first process begins an audit that asks three questions, and ends. A
second one makes one call: it answers them and brings a list of requirements. The graph is then given the same, and
both reports are compared. What is judged, and how the report looks, is the demo's; only the flow is written anew.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rehydrate import (
    FunctionalContext,
    SqliteCheckpointStorage,
    Workflow,
    current_step,
    extend,
    step,
    workflow,
)
from rehydrate.demo.answers import AnswerNotUnderstoodError, settle
from rehydrate.demo.environment import Distribution, Environment
from rehydrate.demo.journal import Happened, note
from rehydrate.demo.licences import Undecided, Verdict, classify, decided_by_person
from rehydrate.demo.look_up import LookUp
from rehydrate.demo.messages import AuditRequest, LicenceQuestion
from rehydrate.demo.report import AuditReport, Sighting, render
from rehydrate.demo.sources import read_or_say_why
from rehydrate.demo.unclear import UNCLEAR_LICENCES, make_unclear_environment
from rehydrate.demo.workflow import audit_workflow

read = step(name="read")(read_or_say_why)  # disk work, so a plain function: it runs in a thread


@step
async def judge(distribution: Distribution, journal: str | None) -> Verdict | Undecided:
    """Judge a distribution by its licence, after a look-up."""
    look_up: LookUp = current_step().resources["look_up"]
    await look_up.wait()
    found = classify(distribution)
    note(journal, Happened.CLASSIFIED, distribution.key)
    return found


@workflow(
    name="licence-audit-function",
    types=[LicenceQuestion, str],
    reducers={"sources": extend, "sightings": extend, "rows": extend, "missing": extend, "findings": extend},
    resources={"look_up": LookUp},
)
async def audit(request: AuditRequest, ctx: FunctionalContext) -> AuditReport:
    """Read the sources, judge what is new in them, ask a person where needed, and report all that this run knows."""
    journal: str | None = ctx.run_args["journal"]

    async def verdict_on(distribution: Distribution) -> Verdict:
        found = await judge(distribution, journal)
        refused = ""
        while isinstance(found, Undecided):
            answer = await ctx.request_info(LicenceQuestion(found, refused), response_type=str)
            try:
                settled = settle(answer)
            except AnswerNotUnderstoodError as error:
                refused = str(error)
            else:
                return decided_by_person(found, settled.licence, settled.family)
        return found

    environments = await ctx.gather(*[read(source, request.installed_in) for source in request.sources])
    fresh = keep_what_is_new(environments, ctx)
    rows = await ctx.gather(*[verdict_on(each) for each in fresh])
    ctx.state.update("rows", list(rows))
    return AuditReport(
        sources=tuple(ctx.state.get("sources", [])),
        sightings=tuple(ctx.state.get("sightings", [])),
        rows=tuple(ctx.state.get("rows", [])),
        missing=tuple(ctx.state.get("missing", [])),
        findings=tuple(ctx.state.get("findings", [])),
    )


def keep_what_is_new(environments: tuple[Environment, ...], ctx: FunctionalContext) -> list[Distribution]:
    """Put into state what was not found before, and return the distributions that are to be judged."""
    judged: set[str] = {sighting.key for sighting in ctx.state.get("sightings", [])}
    fresh: list[Distribution] = []
    for environment in environments:
        for key, found in (
            ("sources", [environment.source]),
            ("sightings", [Sighting(each.key, environment.source) for each in environment.distributions]),
            ("missing", environment.missing),
            ("findings", environment.findings),
        ):
            known: list[object] = ctx.state.get(key, [])
            ctx.state.update(key, [each for each in found if each not in known])
        fresh += [each for each in environment.distributions if each.key not in judged]
        judged.update(each.key for each in environment.distributions)
    return fresh


async def begin(flow: Workflow, file: Path, site: Path) -> None:
    """Audit an environment; the run pauses with its questions."""
    async with SqliteCheckpointStorage(file) as store:
        result = await flow.run(
            AuditRequest((str(site),), str(site)),
            run_id=flow.name,
            checkpoint_storage=store,
            run_args={"journal": None},
            resources={"look_up": LookUp(0, 2)},
        )
        say(f"    {flow.name}: {len(result.pending_requests)} questions")


async def go_on(flow: Workflow, file: Path, request: AuditRequest) -> str:
    """Look at the questions, then answer them and bring more to audit in one call; return the report."""
    async with SqliteCheckpointStorage(file) as store:
        (header,) = await store.runs(workflow=flow.name)
        questions = (await store.inspect(header.checkpoint_id)).requests
        result = await flow.run(
            request,
            checkpoint=header.checkpoint_id,
            responses={each.request_id: UNCLEAR_LICENCES[each.data["about"]["name"]] for each in questions},
            checkpoint_storage=store,
            run_args={"journal": None},
            resources={"look_up": LookUp(0, 2)},
        )
    report = result.outputs[-1]
    assert isinstance(report, AuditReport)
    return render(report)


def say(text: str) -> None:
    """Print at once, so that the lines of both processes come in their order."""
    print(text, flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        site = make_unclear_environment(root)
        requirements = root / "requirements.txt"
        requirements.write_text("silent\nnot-installed-anywhere\n", encoding="utf-8")
        say("1. A process of its own begins the audit, as a function and as a graph.")
        subprocess.run([sys.executable, __file__, str(root / "runs.db"), str(site)], check=True)
        say(f"2. It has ended. Process {os.getpid()} makes one call for each: restore, answers, and more to audit.")
        more = AuditRequest((str(requirements),), str(site))
        of_function, of_graph = (asyncio.run(go_on(flow, root / "runs.db", more)) for flow in (audit, audit_workflow()))
        say(of_function.replace(folder, ""))
        assert of_function == of_graph
        say("Function and graph give the same report.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for each in (audit, audit_workflow()):
            asyncio.run(begin(each, Path(sys.argv[1]), Path(sys.argv[2])))
    else:
        main()
