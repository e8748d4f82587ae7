"""Values of the standard library that are more than what a workflow stores, and combined flags."""

import pytest

from rehydrate.errors import AgentFrameworkImportError
from tests.agent_framework.here import BUILDERS, import_files
from tests.fixtures.maf.claims import Right

DICTS = ("collections:Counter", "collections:OrderedDict", "collections:defaultdict")


def state_of(**options) -> dict[str, object]:
    """Return the state of the run in the files of `kinds`."""
    (run,) = import_files("1.23.0", "kinds", **options).runs
    codec = BUILDERS["kinds"]().program.codec
    return {key: codec.open(record.value) for key, record in run.checkpoint.records.table("", "state").items()}


def test_combined_flags_and_their_names_come_through() -> None:
    """Two at once, one that has a name for two, one, and none."""
    state = state_of(leave_out=["state:ordered", "state:counted", "state:grouped"])
    assert state == {"rights": [Right.READ | Right.SHARE, Right.BOTH, Right.WRITE, Right(0)]}


def test_what_has_no_named_fields_comes_to_a_function_as_value() -> None:
    """A flag is its number."""
    types = {**dict.fromkeys(DICTS), "claims:Right": lambda fields: fields["value"]}
    assert state_of(types=types)["rights"] == [5, 3, 2, 0]


@pytest.mark.parametrize(
    ("key", "name"), [("counted", DICTS[0]), ("ordered", DICTS[1]), ("grouped", DICTS[2])], ids=lambda value: value
)
def test_a_dict_that_is_more_than_one_is_not_taken_for_one(key, name) -> None:
    """It is refused, with its place, its class and the two ways on."""
    rest = [f"state:{other}" for other in ("counted", "ordered", "grouped") if other != key]
    with pytest.raises(AgentFrameworkImportError) as caught:
        import_files("1.23.0", "kinds", leave_out=rest)
    ((_, why),) = caught.value.refused
    assert why == (
        f"state key {key!r}: no workflow stores a {name!r}: map it in types, to None for a dict, or to a function of"
        f" it. To do without it, leave out 'state:{key}'"
    )


def test_a_dict_that_is_more_than_one_becomes_what_types_says() -> None:
    """A dict, or what a function makes of it."""
    types = {**dict.fromkeys(DICTS), "collections:OrderedDict": lambda given: [list(pair) for pair in given.items()]}
    state = state_of(types=types)
    del state["rights"]
    assert state == {"ordered": [["b", 1], ["a", 2]], "counted": {"a": 2, "b": 1}, "grouped": {"a": [1]}}
    assert type(state["counted"]) is dict
