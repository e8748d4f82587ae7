"""Whether a workflow survives restarts: it is run once as it is, and once in a process that ends at every checkpoint.

For each new process what executors hold beside the run is put back to what it was, as far as it can be found. What
then comes out otherwise was not in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rehydrate.api.workflow import Workflow
from rehydrate.ports import CheckpointStorage
from rehydrate.runtime.watch import CommandKind, Moment, Watched

from .driving import Answers, Crash, Drive, Driven, Workflows
from .facts import differences
from .outside import Outside


class SurvivalError(AssertionError):
    """State was lost with a process: `differences` say how runs end, `suspects` what changed beside the run."""

    def __init__(self, found: Sequence[str], suspects: Sequence[str], *, repeats: bool) -> None:
        self.differences = tuple(found)
        self.suspects = tuple(suspects)
        lines = ["a run that was restored at every checkpoint ends otherwise than the uninterrupted one:"]
        lines += [f"- {text}" for text in found]
        if not repeats:
            lines.append(
                "Two uninterrupted runs differ as well: the workflow draws on chance, on time, or on a world that"
            )
            lines.append("the runs change (give it as keep=, or as a resource).")
        elif suspects:
            lines.append("What changed outside of the run, and is lost with its process:")
            lines += [f"- {text}" for text in suspects]
            lines.append("Keep it in ctx.set_state, or in on_checkpoint_save and on_checkpoint_restore.")
        else:
            lines.append(
                "Nothing was found that changed in the executors, their classes, closures and globals; look at"
            )
            lines.append("what they call.")
        super().__init__("\n".join(lines))


class _EveryCheckpoint:
    """Ends the process after every commit, but for the claim of one that goes on: that would be no progress."""

    def __init__(self, attempt: int) -> None:
        self._goes_on = attempt > 0

    def __call__(self, kind: CommandKind, moment: Moment, turn: Watched) -> None:
        if (kind, moment) != ("commit", "after") or (self._goes_on and not turn.claimed):
            return
        raise Crash("at every checkpoint")


async def assert_survives(
    workflow: Workflows,
    message: object,
    *,
    answers: Answers | None = None,
    make_store: Callable[[], CheckpointStorage] | None = None,
    run_args: object = None,
    resources: Mapping[str, object] | None = None,
    keep: Iterable[object] = (),
) -> Driven:
    """Run a workflow as it is, and again with a new process at every checkpoint; compare outputs, requests and state.

    Given a function that builds the workflow, each process has executors of its own. `keep` are objects that stand for
    the outside world and are left as they are, as resources are. Returns how the interrupted run was driven. Raises
    `SurvivalError`, which names what was lost.
    """
    first = workflow if isinstance(workflow, Workflow) else workflow()
    outside = Outside(first.definition, keep)
    options = {"run_args": run_args, "resources": resources}

    async def driven(
        by: Workflows,
        watching: Callable[[int], _EveryCheckpoint] | None = None,
        restarted: Callable[[], None] | None = None,
    ) -> Driven:
        store = make_store() if make_store is not None else None
        return await Drive(by, store, watching=watching, restarted=restarted, options=options).run(message, answers)

    expected = await driven(first)
    suspects = outside.changes()
    found = await driven(workflow, _EveryCheckpoint, outside.reset)
    wrong = differences(expected, found)
    if not wrong:
        return found
    outside.reset()
    again = await driven(first if isinstance(workflow, Workflow) else workflow())
    raise SurvivalError(wrong, suspects, repeats=not differences(expected, again))
