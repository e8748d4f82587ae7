"""Whether values can be checked against a hint, and why not.

Looks at hints only, never at values; resolves no names.
"""

from __future__ import annotations

from typing import ForwardRef

from rehydrate.graph.hints import (
    Hint,
    checks_elements,
    describe,
    fields_of,
    has_runtime_check,
    is_anything,
    is_literal,
    is_typed_dict,
    may_contain_itself,
    members,
    shape,
)


def problem_of(hint: Hint, within: tuple[Hint, ...] = ()) -> str | None:
    """Return why values cannot be checked against a hint, as the end of a sentence; `None` where they can.

    Nothing is said of the hints `within`, which are being looked at.
    """
    if may_contain_itself(hint):
        if hint in within:
            return None
        within = (*within, hint)
    for member in members(hint):
        problem = _problem_of_member(member, within)
        if problem:
            return problem
    return None


def _problem_of_member(hint: Hint, within: tuple[Hint, ...]) -> str | None:
    if is_anything(hint) or is_literal(hint):
        return None
    if isinstance(hint, ForwardRef):
        return f"{hint.__forward_arg__!r} is only a name, in the bound of a type variable or an alias"
    found = shape(hint)
    if found is None:
        return f"{hint!r} is not a type"
    if is_typed_dict(found.origin):
        return _problem_of_fields(hint, within)
    if not has_runtime_check(found.origin):
        return f"{describe(hint)} is a protocol that is not @runtime_checkable"
    arguments = found.arguments if checks_elements(found.origin) else ()
    parts = (part for part in arguments or () if part is not Ellipsis)
    return next((problem for part in parts if (problem := problem_of(part, within))), None)


def _problem_of_fields(typed_dict: Hint, within: tuple[Hint, ...]) -> str | None:
    try:
        fields = fields_of(typed_dict)
    except NameError as error:
        return f"a key of {describe(typed_dict)} cannot be resolved ({error})"
    return next((problem for hint, _ in fields.values() if (problem := problem_of(hint, within))), None)
