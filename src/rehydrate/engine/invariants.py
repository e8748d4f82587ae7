"""Numbered invariants of a run: what must hold of its records between any two transitions.

They never steer. Tests check them after every transition; a restore checks them before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from rehydrate.ids import ABOVE_ROOT, join_slot, slot
from rehydrate.model.passes import CallRecord, CallsRecord, PassRecord
from rehydrate.model.records import (
    CounterRecord,
    DoneRecord,
    RequestRecord,
    RunRecord,
    ScopeRecord,
    Spliced,
    StateRecord,
    StepRecord,
    TimerRecord,
    Trail,
    TurnRecord,
)
from rehydrate.model.request_packs import ID_BYTES, RequestsRecord
from rehydrate.model.sealed import Items, Listed

from .forms import misshapen
from .plan import ChainKey, chain_key, invocation_name
from .requests import LONGEST, standing_requests
from .rope import numbers_of
from .run import Run
from .splicing import FAN, grows

_NOTHING = Items(b"", 0)
#: Digits that no number of a part has.
_LONGEST = 20
_RUN_LEVEL = frozenset({"run", "signature", "turn", "output", "receipt", "receipts"})


def check_run(run: Run) -> list[str]:
    """Return every broken invariant, by number."""
    found = misshapen(run)
    if found:
        return found
    if not isinstance(run.get("", "run", ""), RunRecord):
        found.append("I1: a run has its run record")
    if not isinstance(run.get("", "turn", ""), TurnRecord):
        found.append("I2: a run has a turn record")
    if run.get(ABOVE_ROOT, "scope", "") is None:
        found.append("I3: a run has its root scope")
    live = _live(run)
    for path, kind in run.tables:
        if path == ABOVE_ROOT or (path == "" and kind in _RUN_LEVEL):
            continue
        if path not in live:
            found.append(f"I4: no record of a dead scope ({path!r} has {kind!r})")
        elif kind in _RUN_LEVEL:
            found.append(f"I5: {kind!r} records are the run's, not a scope's ({path!r})")
    for path in live:
        found += _check_scope(run, path)
    return found


def _live(run: Run) -> set[str]:
    """Return the paths of scopes that hang together with the root."""
    found: set[str] = set()
    waiting = [""]
    while waiting:
        path = waiting.pop()
        found.add(path)
        waiting += [join_slot(path, segment) for segment in run.table(path, "scope")]
    return found


def _check_scope(run: Run, path: str) -> list[str]:
    parent, segment = slot(path)
    found: list[str] = []
    step: StepRecord | None = run.get(parent, "step", segment)
    scope = run.get(parent, "scope", segment)
    where = path or "the root"
    if not isinstance(scope, ScopeRecord):
        found.append(f"I6: a live scope has its scope record ({where})")
        return found
    found += [
        f"I7: a superstep belongs to a scope ({where} lists {name!r})"
        for name in run.table(path, "step")
        if name not in run.table(path, "scope")
    ]
    found += [
        f"I36: what came to rest is a scope ({where}: {name!r:.80})"
        for name in run.table(path, "rest")
        if name not in run.table(path, "scope")
    ]
    if step is None:
        found += [
            f"I8: a scope at rest has no {kind!r} records ({where})"
            for kind in ("done", "unrouted", "failure", "attempt", "inbox", "limit")
            if run.table(path, kind)
        ]
        if run.table(path, "step"):
            found.append(f"I9: below a scope at rest nothing is unfinished ({where})")
    else:
        found += _check_step(run, path, step, scope, where)
    if path and run.get(parent, "rest", segment) is not None and step is not None:
        found.append(f"I10: a scope with a superstep is not at rest ({where})")
    timer: TimerRecord | None = run.get(path, "timer", "")
    if timer is not None and timer.deadline is not None and step is None:
        found.append(f"I22: the time of a scope at rest stands still ({where})")
    broken = _check_packs(run, path, where)
    if broken:
        return found + broken
    found += _check_passes(run, path, step, where)
    found += _check_names(run, path, where)
    found += _check_state(run, path, where)
    found += _check_maps(run, path, step, where)
    found += _check_inputs(run, path, scope, where)
    found += [
        f"I21: a request on its way up is one of its scope or of one below ({where}: {record.request!r})"
        for record in run.table(path, "outbox").values()
        if record.request and not record.request.startswith(f"{path}/")
    ]
    return found


def _check_packs(run: Run, path: str, where: str) -> list[str]:
    """A pack says how many requests it holds, and of what trails; some of them, never all, are noted as closed."""
    packs: dict[str, RequestsRecord] = dict(run.items(path, "requests"))
    found: list[str] = []
    for name, pack in packs.items():
        counts = [group.count for group in pack.groups]
        if not 0 < sum(counts) == pack.count <= len(pack.body) or min(counts) < 1 or len(pack.ids) % ID_BYTES:
            found.append(f"I23: a pack of requests says how many it holds ({where}: {name!r})")
    for name, closed in run.items(path, "closed"):
        pack = packs.get(name)
        bits = closed.mask if pack is not None and len(closed.bits) <= pack.count else 0
        if not bits or pack is None or bits.bit_length() > pack.count or bits.bit_count() == pack.count:
            found.append(f"I24: what is closed is some of a pack ({where}: {name!r})")
    return found


def _check_passes(run: Run, path: str, step: StepRecord | None, where: str) -> list[str]:
    """What a function remembers belongs to a pass that has begun, and so does a scope that it called."""
    passes: dict[str, PassRecord] = dict(run.items(path, "pass"))
    found: list[str] = []
    for kind in ("call", "calls", "read"):
        numbers = {name.partition(":")[0] for name in run.table(path, kind)}
        found += [f"I26: a {kind!r} record belongs to a pass ({where}: {n!r:.80})" for n in numbers if n not in passes]
    scopes: dict[str, ScopeRecord] = dict(run.items(path, "scope"))
    for segment, record in scopes.items():
        if record.call and run.get(path, "call", record.call) is None:
            found.append(f"I27: a called scope has its call ({where}: {segment!r})")
    going_on = [delivery for delivery in step.deliveries if delivery.kind == "pass"] if step is not None else []
    going_on += [record for record in run.table(path, "inbox").values() if record.kind == "pass"]
    found += [
        f"I28: what goes on is a pass ({where}: {item.name!r:.80})" for item in going_on if item.name not in passes
    ]
    if passes:
        found += _check_waits(run, path, step, passes, where)
    return found


def _check_waits(
    run: Run, path: str, step: StepRecord | None, passes: Mapping[str, PassRecord], where: str
) -> list[str]:
    """A pass that waits has its message, an open question its call, and what came back the form of its kind."""
    begun = {str(delivery.activation) for delivery in step.deliveries} if step is not None else set[str]()
    found = [
        f"I29: a pass that waits has its message ({where}: {name!r:.80})"
        for name, record in passes.items()
        if record.payload is None and name not in begun
    ]
    requests: list[RequestRecord] = list(run.table(path, "request").values())
    found += [
        f"I30: an open question of a function has its call ({where}: {request.handler!r:.80})"
        for request in requests
        if run.get(path, "call", f"{request.activation}:{request.handler}") is None
    ]
    packs: list[CallsRecord] = list(run.table(path, "calls").values())
    calls: list[tuple[str, CallRecord]] = [*run.items(path, "call"), *(call for p in packs for call in p.calls.items())]
    found += [
        f"I31: what a call gives is of its kind ({where}: {name!r:.80})"
        for name, call in calls
        if (call.value is None and call.kind == "value")
        or (call.value is not None and isinstance(call.value, Listed) != (call.kind == "workflow"))
    ]
    return found


def _check_names(run: Run, path: str, where: str) -> list[str]:
    """Requests and scopes are ordered by the numbers in their names, and a number can be too long to be read."""
    texts = [(name, max(len(name), len(record.executor))) for name, record in run.items(path, "request")]
    texts += [(name, max(len(pack.low), len(pack.high))) for name, pack in run.items(path, "requests")]
    texts += [(name, len(name)) for name in run.table(path, "scope")]
    return [
        f"I25: a request or a scope has a name that can be one ({where}: {name[:LONGEST]!r})"
        for name, longest in texts
        if longest > LONGEST
    ]


def _check_maps(run: Run, path: str, step: StepRecord | None, where: str) -> list[str]:
    """Whatever belongs to an item of a map says so by the map's number, at every second place of its trail."""
    maps = run.table(path, "map")
    trails: list[Trail] = [delivery.trail for delivery in step.deliveries] if step is not None else []
    trails += [trail for _, trail in standing_requests(run, path)]
    for kind in ("scope", "join", "map", "gather", "inbox"):
        trails += [record.trail for record in run.table(path, kind).values()]
    numbers = {number for trail in trails for number in trail[1::2]}
    found = [f"I17: an item of a map belongs to an open one ({where}: {n})" for n in numbers if str(n) not in maps]
    found += [
        f"I18: what a map has gathered came on behalf of its items ({where}: {name!r})"
        for name, record in run.table(path, "gather").items()
        if record.map not in record.trail[1::2]
    ]
    return found


def _check_inputs(run: Run, path: str, scope: ScopeRecord, where: str) -> list[str]:
    """Check that a shared scope knows every input that something in it descends from."""
    known = {int(name) for name in run.table(path, "input")}
    if not path or scope.trail:
        return [f"I19: only a shared scope has input records ({where})"] if known else []
    step: StepRecord | None = run.get(*_listed(path, "step"))
    numbers = {delivery.trail[0] for delivery in step.deliveries} if step is not None else set[int]()
    numbers.update(trail[0] for _, trail in standing_requests(run, path))
    for kind in ("join", "map", "gather", "inbox"):
        numbers.update(record.trail[0] for record in run.table(path, kind).values())
    numbers.update(record.input for record in run.table(path, "outbox").values())
    return [f"I20: an input that something descends from is known ({where}: {number})" for number in numbers - known]


def _listed(path: str, kind: str) -> tuple[str, str, str]:
    parent, segment = slot(path)
    return parent, kind, segment


def _check_step(run: Run, path: str, step: StepRecord, scope: ScopeRecord, where: str) -> list[str]:
    found: list[str] = []
    if step.superstep != scope.superstep:
        found.append(f"I11: the unfinished superstep is the scope's newest ({where})")
    known = {invocation_name(delivery.executor, delivery.activation) for delivery in step.deliveries}
    if len(known) != len(step.deliveries):
        found.append(f"I37: the invocations of a superstep are numbered apart ({where})")
    found += _check_activations(run, path, step, where)
    for kind in ("done", "unrouted"):
        for name, record in run.table(path, kind).items():
            if name not in known or not isinstance(record, DoneRecord):
                found.append(f"I12: a finished invocation is one of the superstep ({where}: {name!r})")
    found += [
        f"I17: attempts are counted of an unfinished invocation ({where}: {name!r})"
        for name in run.table(path, "attempt")
        if name not in known or name in run.table(path, "done")
    ]
    found += [
        f"I13: a delivery has its payload ({where}: {delivery.executor!r})"
        for delivery in step.deliveries
        if not 0 <= delivery.payload < len(step.payloads) - (delivery.kind == "answer")
    ]
    return found


def _check_activations(run: Run, path: str, step: StepRecord, where: str) -> list[str]:
    """Activations were given one after the other: each is one that its counter has come to, and follows the last."""
    last: dict[ChainKey, int] = {}
    wrong: set[str] = set()
    for delivery in step.deliveries:
        executor, number = delivery.executor, delivery.activation
        counter: CounterRecord | None = run.get(path, "counter", executor)
        key = chain_key(delivery)
        before = last.get(key)
        follows = before is None or number == before + 1 or (key[1] and number > before)
        if counter is None or not 1 <= number <= counter.value or not follows:
            wrong.add(executor)
        last[key] = number
    return [f"I38: activations are counted ({where}: {executor!r:.80})" for executor in sorted(wrong)]


def _check_state(run: Run, path: str, where: str) -> list[str]:
    found: list[str] = []
    parts: dict[str, dict[str, Items]] = {}
    for name, record in run.table(path, "part").items():
        key, _, number = name.rpartition("\x1f")
        parts.setdefault(key, {})[number] = record.items
    for key, record in run.table(path, "state").items():
        state: StateRecord = record
        value, left = state.value, parts.get(key, {})
        if isinstance(value, Spliced) and not _takes_its_pieces(value, left):
            found.append(f"I21: a value in state has its pieces ({where}: {key!r})")
        elif grows(state):
            first, held = (value.until, value.count) if isinstance(value, Spliced) else (0, 0)
            numbered = all(_is_number(name, first, state.next) for name in left)
            whole = state.count == held + sum(items.count for items in left.values())
            # Each part stands for itself or for a number of former ones, so the newest is never far to seek.
            near = state.next - first <= FAN * (len(left) + 1)
            if not (numbered and whole and near):
                found.append(f"I14: a list in state has all its parts ({where}: {key!r})")
            left.clear()
    found += [f"I15: a part belongs to a value in state ({where}: {key!r})" for key, left in parts.items() if left]
    numbers = [record.number for kind in ("join", "gather") for record in run.table(path, kind).values()]
    if len(numbers) != len(set(numbers)):
        found.append(f"I16: messages that joins and maps hold are numbered apart ({where})")
    return found


def _is_number(name: str, first: int, end: int) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < _LONGEST and first <= int(name) < end


def _takes_its_pieces(value: Spliced, parts: dict[str, Items]) -> bool:
    """Take a value's parts out of those that there are; `False` where one is missing or used more than once."""
    free = {number: len(items.data) for number, items in parts.items()}
    used: set[str] = set()
    for piece in value.pieces:
        if isinstance(piece, bytes):
            continue
        if len(piece) == 2 and abs(piece[1] - piece[0]) < len(parts) and numbers_of(piece):
            ranges = [(str(number), free.get(str(number), 0)) for number in numbers_of(piece)]
        elif len(piece) == 3 and 0 <= piece[1] < piece[2] <= len(parts.get(str(piece[0]), _NOTHING).data):
            ranges = [(str(piece[0]), piece[2] - piece[1])]
        else:
            return False
        for number, size in ranges:
            used.add(number)
            if not 0 < size <= free.get(number, 0):
                return False
            free[number] -= size
    for number in used:
        del parts[number]
    return True
