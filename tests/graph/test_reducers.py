"""The reducers of the library."""

import operator

import pytest

from rehydrate.graph.definition import LIST_REDUCERS, Reducer
from rehydrate.graph.reducers import add, append, extend, merge, reducer_of


@pytest.mark.parametrize(
    ("reducer", "current", "contribution", "result"),
    [
        (add, None, 5, 5),
        (add, 2, 5, 7),
        (add, "a", "b", "ab"),
        (merge, None, {"a": 1}, {"a": 1}),
        (merge, {"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
    ],
)
def test_a_reducer_makes_the_new_value(reducer, current, contribution, result) -> None:
    """The first contribution meets None."""
    assert reducer.function(current, contribution) == result


def test_merging_leaves_its_arguments_alone() -> None:
    """Values may be shared."""
    current = {"a": 1}
    assert merge.function(current, {"b": 2}) is not current
    assert current == {"a": 1}


def test_lists_grow_without_a_function() -> None:
    """They are not read to grow."""
    assert {append.name, extend.name} == LIST_REDUCERS
    assert (append.function, extend.function) == (None, None)


def test_a_function_becomes_a_reducer_of_its_name() -> None:
    """A lambda has none, so it needs Reducer(name, function)."""
    assert reducer_of(operator.or_) == Reducer("or_", operator.or_)
    assert reducer_of(add) is add
    assert reducer_of(lambda current, contribution: contribution) is None
