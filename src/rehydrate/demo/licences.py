"""The verdict on one distribution, from everything that its metadata says about its licence.

Sources that agree decide; a contradiction, a lone unconfirmed claim or nothing at all leaves the question to a person,
with the reasons. Pure: reads no files and keeps no state.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

from rehydrate.demo import spdx
from rehydrate.demo.claims import Claim, ClaimKind, Slots, agreement, gather
from rehydrate.demo.environment import Distribution
from rehydrate.demo.families import Family, family_of_id
from rehydrate.demo.wording import Options

__all__ = ["DecidedBy", "Evidence", "Undecided", "Verdict", "classify", "decided_by_person"]


class DecidedBy(Enum):
    """Who settled the licence of a distribution."""

    METADATA = "metadata"
    PERSON = "person"


@dataclass(frozen=True)
class Evidence:
    """One thing that a distribution says: where, in which words, and what that can mean."""

    kind: ClaimKind
    said: str
    means: str


@dataclass(frozen=True)
class Verdict:
    """The licence of one distribution.

    `licence` is an SPDX expression where it is exact; otherwise it shows what is open (`BSD-*`) and `flags` says so.
    """

    key: str
    name: str
    version: str
    source: str
    licence: str
    family: Family
    decided_by: DecidedBy
    flags: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Undecided:
    """A distribution whose licence a person has to settle, and why."""

    key: str
    name: str
    version: str
    source: str
    location: str
    reasons: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class _Finding:
    """What the claims come to: a licence with flags, or reasons for asking."""

    licence: str = ""
    family: Family = Family.UNKNOWN
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def classify(distribution: Distribution) -> Verdict | Undecided:
    """Decide the licence of a distribution from its metadata, or say why that cannot be done."""
    claims = gather(distribution)
    evidence = tuple(Evidence(claim.kind, _shortened(claim.said), _meaning(claim)) for claim in claims)
    found = _conclude(claims)
    key, name, version, source = distribution.key, distribution.name, distribution.version, distribution.source
    if found.reasons:
        return Undecided(key, name, version, source, distribution.location, found.reasons, evidence)
    flags = (*found.flags, *_not_understood(claims))
    return Verdict(key, name, version, source, found.licence, found.family, DecidedBy.METADATA, flags, evidence)


def decided_by_person(about: Undecided, licence: str, family: Family) -> Verdict:
    """Return the verdict of a person on what the metadata could not decide."""
    return Verdict(
        key=about.key,
        name=about.name,
        version=about.version,
        source=about.source,
        licence=licence,
        family=family,
        decided_by=DecidedBy.PERSON,
        evidence=about.evidence,
    )


def _conclude(claims: tuple[Claim, ...]) -> _Finding:
    faults = tuple(claim.fault for claim in claims if claim.fault)
    if faults:
        return _Finding(reasons=faults)
    speaking = [claim for claim in claims if claim.slots]
    if not speaking:
        return _Finding(reasons=("nothing in the metadata says what the licence is",))
    declared = [claim for claim in speaking if claim.kind is not ClaimKind.TEXT]
    texts = [claim for claim in speaking if claim.kind is ClaimKind.TEXT]
    expression = next((claim.expression for claim in declared if claim.expression is not None), None)
    if not declared:
        return _from_texts_alone(texts)
    slots = declared[0].slots
    for claim in declared[1:]:
        common = agreement(slots, claim.slots, partial=declared[0].expression is not None)
        if common is None:
            return _Finding(reasons=(f"{_saying(declared[0])}, but {_saying(claim)}",))
        slots = common
    if len(speaking) == 1 and declared[0].kind is not ClaimKind.EXPRESSION:
        return _Finding(reasons=(f"{_saying(declared[0])}, and nothing confirms it",))
    confirmed, flags, reasons = _compare_with_texts(slots, texts)
    if reasons:
        return _Finding(reasons=reasons)
    return _named(confirmed, expression, flags)


def _not_understood(claims: tuple[Claim, ...]) -> tuple[str, ...]:
    """Note what people wrote in free text: it can be the very exception that matters."""
    unread = (claim for claim in claims if claim.kind is ClaimKind.FIELD and not claim.slots)
    return tuple(f"{_saying(claim)}, which is not understood" for claim in unread)


def _from_texts_alone(texts: list[Claim]) -> _Finding:
    slots = tuple(dict.fromkeys(slot for text in texts for slot in text.slots))
    if len(slots) > 1:
        names = ", ".join(map(_label, slots))
        return _Finding(reasons=(f"only licence files speak, and they hold several licences: {names}",))
    return _named(slots, None, ("only a licence file says so",))


def _compare_with_texts(slots: Slots, texts: list[Claim]) -> tuple[Slots, tuple[str, ...], tuple[str, ...]]:
    """Return what is declared, made more exact by the texts, with flags and with reasons to ask."""
    if not texts:
        return slots, (), ()
    found = tuple(dict.fromkeys(slot for text in texts for slot in text.slots))
    exact = tuple(_narrowed(slot, found) for slot in slots)
    others = [slot for slot in found if not any(slot & declared for declared in slots)]
    if len(others) == len(found):
        said, text = ", ".join(map(_label, slots)), ", ".join(map(_label, others))
        return exact, (), (f"the declared licence is {said}, but the licence file is that of {text}",)
    most = max(_family(slot).rank for slot in slots)
    heavier = [slot for slot in others if _family(slot).rank > most]
    if heavier:
        names = ", ".join(map(_label, heavier))
        return exact, (), (f"a licence file also holds {names}, which asks for more than what is declared",)
    return exact, tuple(f"a licence file also holds {_label(slot)}" for slot in others), ()


def _narrowed(slot: Options, found: Slots) -> Options:
    common = [slot & text for text in found if slot & text]
    return common[0] if len(common) == 1 else slot


def _named(slots: Slots, expression: spdx.Expression | None, flags: tuple[str, ...]) -> _Finding:
    if expression is not None:
        return _Finding(str(expression), spdx.family(expression), flags)
    families = {_family(slot) for slot in slots}
    names = ", ".join(map(_label, slots))
    if len(families) > 1:
        return _Finding(reasons=(f"{names} are declared, and nothing says whether one or all of them apply",))
    flags += tuple(f"{_label(slot)} leaves open which of its forms is meant" for slot in slots if len(slot) > 1)
    if len(slots) > 1:
        flags += (f"nothing says whether one or all of {names} apply",)
    return _Finding(names, families.pop(), flags)


def _family(options: Options) -> Family:
    return max((family_of_id(option) for option in options), key=lambda family: family.rank)


def _label(options: Options) -> str:
    """Name a set of identifiers by what they have in common: `GPL-2.0-*`."""
    names = sorted(options)
    if len(names) == 1:
        return names[0]
    columns = zip(*(name.split("-") for name in names), strict=False)
    common = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
    if common:
        return "-".join(common) + "-*"
    return " or ".join(names)


def _saying(claim: Claim) -> str:
    verb = "say" if claim.kind is ClaimKind.CLASSIFIERS else "says"
    return f"the {claim.kind.value} {verb} {_shortened(claim.said, 60)!r}"


def _meaning(claim: Claim) -> str:
    if claim.expression is not None:
        return str(claim.expression)
    return ", ".join(map(_label, claim.slots)) or "nothing that is known"


def _shortened(text: str, limit: int = 160) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."
