"""Small graphs for tests: nodes with stated types, and specs from a few words."""

from dataclasses import dataclass

from rehydrate.graph.assembly import assemble
from rehydrate.graph.edges import DirectGroup, FanInGroup, FanOutGroup, SwitchGroup
from rehydrate.graph.executor import executor
from rehydrate.graph.graph_spec import GraphSpec, unnumbered
from rehydrate.graph.hints import qualified_name
from rehydrate.graph.validation import problems


@dataclass(frozen=True)
class Built:
    """What stands for a built workflow where only its definition matters."""

    definition: object
    checkpoint_storage: object = None


def node(id, takes=int, gives=int):
    """Make a function executor that takes and returns the given types."""

    def run(message): ...

    return executor(id=id, message=takes, sends=(), yields=(), returns=gives)(run)


def join(id, gives=int, of=int):
    """Make the target of a fan-in."""
    return node(id, list[of], gives)


def edge(source, target, condition=None, name=None):
    """Make a direct edge."""
    return DirectGroup(unnumbered(source, target), condition, name)


def fan_out(source, *targets):
    """Make a fan-out."""
    return FanOutGroup(tuple(unnumbered(source, target) for target in targets))


def fan_in(target, *sources):
    """Make a fan-in."""
    return FanInGroup(tuple(unnumbered(source, target, fan_in=True) for source in sources))


def switch(source, targets, names=(), cases=None):
    """Make a switch; the last target is the default unless `cases` says how many targets are cases."""
    count = len(targets) - 1 if cases is None else cases
    conditions = tuple(bool for _ in range(count))
    return SwitchGroup(conditions, tuple(unnumbered(source, target) for target in targets), names)


def graph(*executors, groups=(), start=None, **settings):
    """Make a spec whose start is the first executor."""
    return GraphSpec(
        name=settings.pop("name", "flow"),
        start=executors[0].id if start is None else start,
        executors=executors,
        groups=tuple(groups),
        **settings,
    )


def defined(spec):
    """Assemble a spec that has no problems."""
    assert problems(spec) == []
    return assemble(spec, qualified_name)
