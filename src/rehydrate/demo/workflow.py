"""The audit as a workflow: scan, classify in a sub-workflow, ask a person one level deeper, collect.

Holds no run state: what was seen, decided and found lives in the state of the run. Reading environments and judging
licences is done elsewhere.
"""

from __future__ import annotations

import asyncio
from typing import Final, Never

from rehydrate import (
    CheckpointStorage,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    add,
    append,
    extend,
    handler,
    response_handler,
)
from rehydrate.demo.answers import AnswerNotUnderstoodError, settle
from rehydrate.demo.environment import (
    Distribution,
    Environment,
    Finding,
    Missing,
)
from rehydrate.demo.journal import Happened, note
from rehydrate.demo.licences import Undecided, Verdict, classify, decided_by_person
from rehydrate.demo.look_up import LookUp
from rehydrate.demo.messages import AuditRequest, LicenceQuestion, Progress, ProgressKind, Scanned
from rehydrate.demo.report import AuditReport, Sighting
from rehydrate.demo.sources import read_or_say_why

__all__ = ["NAME", "audit_workflow"]

NAME: Final = "licence-audit"

_REDUCERS: Final = {
    "sources": extend,
    "sightings": extend,
    "missing": extend,
    "findings": extend,
    "rows": append,
    "decided": add,
    "expected": add,
}

# Far more than a single audit has; a limit that is reached would only have to be continued.
_MAX_SUPERSTEPS: Final = 10_000


class Scan(Executor):
    """Reads the sources of a request and sends each distribution that was not seen before."""

    @handler
    async def on_request(self, request: AuditRequest, ctx: WorkflowContext[Distribution | Scanned]) -> None:
        """Read one source after the other, each in a thread, since it is all disk work."""
        known: list[Sighting] = ctx.get_state("sightings", [])
        sightings = set(known)
        keys = {sighting.key for sighting in known}
        new = 0
        for source in request.sources:
            environment = await asyncio.to_thread(read_or_say_why, source, request.installed_in)
            fresh = [each for each in environment.distributions if each.key not in keys]
            for distribution in fresh:
                ctx.send_message(distribution, target_id="classify")
            keys.update(each.key for each in fresh)
            seen = [Sighting(each.key, source) for each in environment.distributions]
            ctx.update_state("sightings", [each for each in seen if each not in sightings])
            sightings.update(seen)
            _record(environment, ctx)
            new += len(fresh)
            detail = f"{len(environment.distributions)} distributions, {len(fresh)} of them new"
            ctx.emit(Progress(ProgressKind.SCANNED, source, detail, len(fresh)))
        ctx.send_message(Scanned(new), target_id="collect")


def _record(environment: Environment, ctx: WorkflowContext[Distribution | Scanned]) -> None:
    """Keep what was found, once: a source that is read again says most of it again."""
    sources: list[str] = ctx.get_state("sources", [])
    if environment.source not in sources:
        ctx.update_state("sources", [environment.source])
    findings: list[Finding] = ctx.get_state("findings", [])
    ctx.update_state("findings", [each for each in environment.findings if each not in findings])
    missing: list[Missing] = ctx.get_state("missing", [])
    ctx.update_state("missing", [each for each in environment.missing if each not in missing])


class Examine(Executor):
    """Judges one distribution by its metadata; what that cannot decide goes on to a person."""

    @handler
    async def on_distribution(self, distribution: Distribution, ctx: WorkflowContext[Undecided, Verdict]) -> None:
        """Wait as for a licence database, then decide or pass on."""
        look_up: LookUp = ctx.resources["look_up"]
        await look_up.wait()
        found = classify(distribution)
        note(ctx.run_args["journal"], Happened.CLASSIFIED, distribution.key)
        if isinstance(found, Verdict):
            ctx.emit(Progress(ProgressKind.CLASSIFIED, distribution.key, found.licence))
            await ctx.yield_output(found)
        else:
            ctx.emit(Progress(ProgressKind.CLASSIFIED, distribution.key, "not decided by its metadata"))
            await ctx.send_message(found)


class Ask(Executor):
    """Asks a person about one distribution until the answer names a licence."""

    @handler
    async def on_undecided(self, undecided: Undecided, ctx: WorkflowContext[Never, Verdict]) -> None:
        """Open the question; the run waits for it as long as it takes."""
        await ctx.request_info(LicenceQuestion(undecided), response_type=str)

    @response_handler
    async def on_answer(self, question: LicenceQuestion, answer: str, ctx: WorkflowContext[Never, Verdict]) -> None:
        """Take the answer, or ask again and say why."""
        about = question.about
        try:
            settled = settle(answer)
        except AnswerNotUnderstoodError as error:
            await ctx.request_info(LicenceQuestion(about, refused=str(error)), response_type=str)
            return
        await ctx.yield_output(decided_by_person(about, settled.licence, settled.family))


class Collect(Executor):
    """Keeps every verdict and gives the report once there is one for each distribution."""

    @handler
    async def on_verdict(self, verdict: Verdict, ctx: WorkflowContext[Never, AuditReport]) -> None:
        """Add a row."""
        decided = ctx.get_state("decided", 0) + 1
        await ctx.update_state("rows", verdict)
        await ctx.update_state("decided", 1)
        await self._report_if(decided == ctx.get_state("expected", 0), ctx)

    @handler
    async def on_scanned(self, scanned: Scanned, ctx: WorkflowContext[Never, AuditReport]) -> None:
        """Expect as many rows more; report at once where scanning brought nothing new."""
        expected = ctx.get_state("expected", 0) + scanned.new
        await ctx.update_state("expected", scanned.new)
        await self._report_if(expected == ctx.get_state("decided", 0), ctx)

    async def _report_if(self, complete: bool, ctx: WorkflowContext[Never, AuditReport]) -> None:
        # Counted by the callers, since reading all rows for each new one would cost the square of their number.
        if complete:
            await ctx.yield_output(_report(ctx))


def _report(ctx: WorkflowContext[Never, AuditReport]) -> AuditReport:
    sources: list[str] = ctx.get_state("sources", [])
    sightings: list[Sighting] = ctx.get_state("sightings", [])
    rows: list[Verdict] = ctx.get_state("rows", [])
    missing: list[Missing] = ctx.get_state("missing", [])
    findings: list[Finding] = ctx.get_state("findings", [])
    return AuditReport(
        sources=tuple(sources),
        sightings=tuple(sightings),
        rows=tuple(rows),
        missing=tuple(missing),
        findings=tuple(findings),
    )


def audit_workflow(checkpoint_storage: CheckpointStorage | None = None) -> Workflow:
    """Build the audit: three workflows, one inside the other.

    Each call brings the resource `look_up` and the run argument `journal`, a path or None.
    """
    person = WorkflowBuilder(name="person", start_executor=Ask("ask")).build()
    examine = Examine("examine")
    classify_one = (
        WorkflowBuilder(name="classify", start_executor=examine)
        .add_edge(examine, WorkflowExecutor(person, id="person"))
        .build()
    )
    scan, collect = Scan("scan"), Collect("collect")
    return (
        WorkflowBuilder(
            name=NAME,
            start_executor=scan,
            checkpoint_storage=checkpoint_storage,
            reducers=_REDUCERS,
            resources={"look_up": LookUp},
            max_supersteps=_MAX_SUPERSTEPS,
        )
        .add_chain([scan, WorkflowExecutor(classify_one, id="classify"), collect])
        .add_edge(scan, collect)
        .build()
    )
