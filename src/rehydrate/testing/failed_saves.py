"""Whether a workflow bears a store that fails: each save of a run fails once, before or after it was written, and the
same call is made again in the same process.

What handlers have done until then they may do again. Must not ask the store what it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rehydrate.errors import RehydrateError, StoreError

from .driving import Answers, Drive, Driven, StoreMaker, Workflows, built, fresh_store
from .facts import differences
from .faulty_store import Fault, FaultyStorage
from .outside import Outside


class FailedSaveError(AssertionError):
    """A run ended otherwise after a save had failed and the call was made again; `differences` say how, by fault."""

    def __init__(self, found: Mapping[str, Sequence[str]], tried: int) -> None:
        self.differences = {fault: tuple(texts) for fault, texts in found.items()}
        lines = [f"{len(found)} of {tried} failed saves change how the run ends:"]
        for fault, texts in found.items():
            lines += [f"- {fault}: {text}" for text in texts]
        lines.append("What was not saved runs again: what handlers do beside the run is then done twice. Keep it in")
        lines.append("ctx.set_state, and let the world know by ctx.effect_key what was done before.")
        super().__init__("\n".join(lines))


async def assert_bears_failed_saves(
    workflow: Workflows,
    inputs: Sequence[object],
    answers: Answers | None = None,
    *,
    make_store: StoreMaker | None = None,
    run_args: object = None,
    resources: Mapping[str, object] | None = None,
    keep: Iterable[object] = (),
) -> int:
    """Run a workflow over its inputs, a turn each, once for each way in which one of its saves can fail, and
    make the call that failed again; compare outputs, requests, statuses and state with the run in which none fails.

    Between two runs what executors hold beside them is put back, but for what is in `keep`. Returns the number of
    failed saves. Raises `FailedSaveError`.
    """
    first = built(workflow)
    outside = Outside(first.definition, keep)
    trial = _Trial(workflow, inputs, answers, make_store, {"run_args": run_args, "resources": resources})
    expected, saves = await trial.run()
    faults = [Fault(does, number=number) for number in range(1, saves + 1) for does in ("fails", "loses reply")]
    found: dict[str, list[str]] = {}
    for fault in faults:
        outside.reset()
        try:
            driven, _ = await trial.run(fault)
        except RehydrateError as error:  # a run that failed, or what was not there any more
            wrong = [f"it raised {type(error).__name__}: {error}"]
        else:
            wrong = differences(expected.results, driven.results)
        if wrong:
            found[f"{fault.call} {fault.number} {fault.does}"] = wrong
    if found:
        raise FailedSaveError(found, len(faults))
    return len(faults)


@dataclass(frozen=True)
class _Trial:
    """Runs that are made over and over, each over a store of its own."""

    workflow: Workflows
    inputs: Sequence[object]
    answers: Answers | None
    make_store: StoreMaker | None
    options: Mapping[str, object]

    async def run(self, *faults: Fault) -> tuple[Driven, int]:
        """Make a run, and return it with the number of its saves."""
        async with fresh_store(self.make_store) as store:
            faulty = FaultyStorage(store, *faults)
            drive = Drive(
                self.workflow, faulty, is_new=lambda attempt: not attempt, options=self.options, again=(StoreError,)
            )
            return await drive.run(self.inputs, self.answers), faulty.counts["commit"]
