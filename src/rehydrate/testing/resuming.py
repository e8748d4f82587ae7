"""Whether a workflow can be resumed: it is run once as it is, and once more from each of its checkpoints.

For each new process what executors hold beside the run is put back to what it was, as far as it can be found. What
then comes out otherwise was not in the checkpoint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from rehydrate.model.checkpoint import Header, Status, Stored
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.program import Program
from rehydrate.runtime.result import WorkflowRunResult

from .driving import Answers, Drive, Driven, MadeCall, StoreMaker, Workflows, built, fresh_store
from .facts import differences, facts
from .interpreters import Interpreter
from .outside import Outside
from .restarting import Restart, Setting, facts_of_call

_PAGE: Final = 100
#: So many checkpoints are told of in the text of an error.
_TOLD: Final = 5


class ResumabilityError(AssertionError):
    """A run that was restored at a checkpoint ended otherwise than the uninterrupted one.

    `differences` say what, by the number of the checkpoint; `suspects` what changed beside the run.
    """

    def __init__(self, found: Mapping[int, Sequence[str]], suspects: Sequence[str], tried: int, *, repeats: bool):
        self.differences = {number: tuple(texts) for number, texts in found.items()}
        self.suspects = tuple(suspects)
        lines = [f"restored at {len(found)} of its {tried} checkpoints, the run ends otherwise than uninterrupted:"]
        for number, texts in list(found.items())[:_TOLD]:
            lines += [f"- checkpoint {number}: {text}" for text in texts]
        if len(found) > _TOLD:
            lines.append(f"- and from {len(found) - _TOLD} more")
        super().__init__("\n".join([*lines, *_next(suspects, repeats=repeats)]))


def _next(suspects: Sequence[str], *, repeats: bool) -> list[str]:
    """Return what to look at."""
    if not repeats:
        return [
            "Two uninterrupted runs differ as well: the workflow draws on chance, on time, or on a world that the runs",
            "change. Give chance and time as a resource, and let what is done in the world bear to be done twice: see",
            "ctx.effect_key.",
        ]
    if suspects:
        return [
            "What changed outside of the run, and is lost with its process:",
            *(f"- {text}" for text in suspects),
            "Keep it in ctx.set_state, or in on_checkpoint_save and on_checkpoint_restore.",
        ]
    return [
        "Nothing was found that changed in the executors, their classes, closures and globals; look at what they call.",
    ]


async def assert_resumable(
    workflow: Workflows,
    inputs: Sequence[object],
    answers: Answers | None = None,
    *,
    make_store: StoreMaker | None = None,
    run_args: object = None,
    resources: Mapping[str, object] | None = None,
    keep: Iterable[object] = (),
    new_interpreter: bool = False,
) -> Driven:
    """Run a workflow over its inputs, a turn each, and go on from every checkpoint that this made, each as a new
    process does; compare outputs, requests, statuses, the state of every scope, and what is told.

    Given a function that builds the workflow, each process has executors of its own. `keep` are objects that stand for
    the outside world and are left as they are, as resources are. With `new_interpreter` it is gone on in another
    process, which is given everything by pickling. Returns how the uninterrupted run was driven; `crashes` is the
    number of checkpoints. Raises `ResumabilityError`, which names what was lost.
    """
    first, kept = built(workflow), tuple(keep)
    outside = Outside(first.definition, kept)
    options = {"run_args": run_args, "resources": resources}
    setting = Setting(workflow, make_store, run_args, resources)
    found: dict[int, list[str]] = {}
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(fresh_store(make_store))
        drive = Drive(first, store, options=options)
        driven = await drive.run(inputs, answers)
        suspects = outside.changes()
        course = _Course(first.program, driven.results, drive.calls)
        differ = setting.differences
        if new_interpreter:
            differ = (await stack.enter_async_context(Interpreter(setting, kept))).differences
        tried = 0
        async for stored in _checkpoints(store, driven.result.run_id):
            tried += 1
            restart = course.restart(stored)
            outside.reset()
            wrong = await differ(restart) if restart is not None else []
            if wrong:
                found[stored.header.seq] = wrong
    if not found:
        return Driven(driven.results, tried)
    outside.reset()
    async with fresh_store(make_store) as store:
        again = await Drive(built(workflow), store, options=options).run(inputs, answers)
    raise ResumabilityError(found, suspects, tried, repeats=not differences(driven.results, again.results))


@dataclass(frozen=True)
class _Course:
    """The uninterrupted run: its calls and their results."""

    program: Program
    results: Sequence[WorkflowRunResult]
    calls: Sequence[MadeCall]

    def restart(self, stored: Stored) -> Restart | None:
        """Return what is to come of a checkpoint; `None` where nothing is left to be done."""
        header = stored.header
        index = next(i for i, result in enumerate(self.results) if header.seq <= result.checkpoint.header.seq)
        left = tuple(self.calls[index + 1 :])
        interrupted = header.status is Status.RUNNING
        if not interrupted and not left:
            if header.status is Status.LIMIT_REACHED or self.results[index].next_due is not None:
                return None  # to go on would be more than the run has done
            return Restart(stored, index + 1, continues=True, calls=(), expected=(facts(self.results[index]),))
        begins = index if interrupted else index + 1
        expected = [facts_of_call(result, self.program, after=header.events) for result in self.results[begins:]]
        return Restart(stored, begins + 1, continues=interrupted, calls=left, expected=tuple(expected))


async def _checkpoints(store: CheckpointStorage, run_id: str) -> AsyncIterator[Stored]:
    """Give every checkpoint of a run, oldest first."""
    headers: list[Header] = []
    page = await store.history(run_id, limit=_PAGE)
    while page:
        headers += page
        page = await store.history(run_id, before=page[-1].seq, limit=_PAGE)
    for header in reversed(headers):
        stored = await store.load(header.checkpoint_id)
        if stored is not None:
            yield stored
