"""How much of a random test runs when: a few seeds in `make test`, more in `make proof`, all in `make exhaustive`.

What `make proof` takes is spread evenly over what there is, so that each kind of case stays in it.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def one_in(every: int, values: Iterable[object]) -> list[ParameterSet]:
    """Return values as parameters; all but every n-th, beginning with the first, are for `make exhaustive` only."""
    return [
        pytest.param(*value, marks=[] if number % every == 0 else pytest.mark.exhaustive)
        if isinstance(value, tuple)
        else pytest.param(value, marks=[] if number % every == 0 else pytest.mark.exhaustive)
        for number, value in enumerate(values)
    ]
