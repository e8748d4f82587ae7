"""Other names inside of a scope: of a state key, with the parts of its list, and of a response handler.

Writes of finished invocations that are not merged count as well.
"""

from __future__ import annotations

import msgspec

from rehydrate.engine.plan import step_key
from rehydrate.engine.run import Run, delta_of
from rehydrate.engine.splicing import part_name
from rehydrate.model.effects import STATE_EFFECTS, Ask, Effect
from rehydrate.model.records import DoneRecord, InboxRecord, Key, Record, RequestRecord, StepRecord


def rename_state_key(run: Run, path: str, old: str, new: str) -> None:
    """Rename a state key in a scope. Raises `ValueError` where both are set."""
    delta: dict[Key, Record | None] = {}
    record = run.get(path, "state", old)
    if record is not None:
        if run.get(path, "state", new) is not None:
            raise ValueError(f"state key {new!r} is set already in {path or 'the root'}")
        delta[path, "state", old] = None
        delta[path, "state", new] = record
        prefix = part_name(old, 0)[:-1]
        for name, part in run.items(path, "part"):
            if name.startswith(prefix):
                delta[path, "part", name] = None
                delta[path, "part", part_name(new, int(name[len(prefix) :]))] = part
    for kind in ("done", "unrouted"):
        for name, item in run.items(path, kind):
            done: DoneRecord = item
            effects = tuple(_renamed(effect, old, new) for effect in done.effects)
            delta[path, kind, name] = msgspec.structs.replace(done, effects=effects)
    run.apply(delta_of(delta))


def _renamed(effect: Effect, old: str, new: str) -> Effect:
    if isinstance(effect, STATE_EFFECTS) and effect.key == old:
        return msgspec.structs.replace(effect, key=new)
    return effect


def rename_handler(run: Run, path: str, executor: str, old: str, new: str) -> None:
    """Let what waits for a response handler of an executor go to one of another name."""
    delta: dict[Key, Record | None] = {}

    def is_meant(record: RequestRecord | InboxRecord) -> bool:
        return record.executor == executor and record.handler == old

    for kind in ("request", "inbox"):
        for name, record in run.items(path, kind):
            if is_meant(record):
                delta[path, kind, name] = msgspec.structs.replace(record, handler=new)
    parent, kind, segment = step_key(path)
    step: StepRecord | None = run.get(parent, kind, segment)
    if step is not None:
        deliveries = tuple(
            msgspec.structs.replace(d, handler=new) if (d.executor, d.handler) == (executor, old) else d
            for d in step.deliveries
        )
        delta[parent, kind, segment] = msgspec.structs.replace(step, deliveries=deliveries)
    for kind in ("done", "unrouted"):
        for name, item in run.items(path, kind):
            if name.partition("#")[0] != executor:
                continue
            effects = tuple(
                msgspec.structs.replace(e, handler=new) if isinstance(e, Ask) and e.handler == old else e
                for e in item.effects
            )
            delta[path, kind, name] = msgspec.structs.replace(item, effects=effects)
    run.apply(delta_of(delta))
