"""Typed messages and typed answers: prompts from values, values from JSON, and schemas of both."""

import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal, TypedDict

import msgspec
import pydantic
import pytest

from rehydrate import WorkflowBuilder, executor
from rehydrate.agents import ChatAgent, tool
from rehydrate.agents.schemas import SchemaError, as_text, parsed, schema_of
from rehydrate.testing import ToolCall
from tests.agents.kit import talk, told


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int


@dataclass(frozen=True)
class Verdict:
    claim: Claim
    mood: Mood
    approved: bool = False


class Street(pydantic.BaseModel):
    name: str


class Address(pydantic.BaseModel):
    street: Street
    number: int = pydantic.Field(gt=0)


class Parcel(TypedDict):
    to: Address
    weight: Annotated[int, msgspec.Meta(ge=1, description="in kg")]


def as_prompt(claim: Claim) -> str:
    return f"Judge claim {claim.id} of {claim.amount}."


@executor(id="after")
async def after(verdict: Verdict) -> str:
    return f"{verdict.claim.id}: {verdict.mood.name}"


def test_a_value_goes_in_by_a_prompt_and_another_comes_out_of_the_answer():
    """The types are those of the nodes, so the graph is checked; an answer that does not fit is asked for again."""
    judge = ChatAgent("judge", "m", prompt=as_prompt, response_type=Verdict)

    async def scenario(call, model):
        flow = WorkflowBuilder("flow", judge).add_chain([judge, after]).build()
        assert (await flow.run(Claim("c-1", 5), **call)).outputs == ["c-1: BAD"]

    good = '{"claim": {"id": "c-1", "amount": 5}, "mood": "bad"}'
    model = talk(['{"claim": {"id": "c-1"}, "mood": "fair"}', good], scenario)
    first, second = model.requests
    assert first["messages"] == [{"role": "user", "content": "Judge claim c-1 of 5."}]
    assert first["response_format"]["json_schema"]["schema"]["properties"]["mood"] == {"$ref": "#/$defs/Mood"}
    assert second["messages"][-1]["content"].startswith("error: your answer does not fit its JSON schema: ")


def test_tools_take_and_give_values_of_types():
    """Dataclasses, enums, literals and pydantic models, in one another; what a tool returns is told as JSON."""
    got = []

    @tool
    async def send(parcel: Parcel, how: Literal["air", "sea"] = "sea", mood: Mood | None = None) -> Verdict:
        got.append((parcel, how, mood))
        return Verdict(Claim("p", parcel["weight"]), mood or Mood.GOOD)

    agent = ChatAgent("clerk", "m", tools=[send])
    street = {"street": {"name": "High St"}, "number": 3}

    async def scenario(call, model):
        assert (await agent.workflow.run("send", **call)).outputs == ["Sent."]

    calls = [
        ToolCall("send", {"parcel": {"to": street, "weight": 2}, "mood": "bad"}),
        ToolCall("send", {"parcel": {"to": {**street, "number": 0}, "weight": 2}}),
        ToolCall("send", {"parcel": {"to": street, "weight": 0}}),
    ]
    model = talk([calls, "Sent."], scenario)
    address = Address(street=Street(name="High St"), number=3)
    assert got == [({"to": address, "weight": 2}, "sea", Mood.BAD)]
    first, second, third = told(model)
    assert first == '{"claim":{"id":"p","amount":2},"mood":"bad","approved":false}'
    assert "greater than 0" in second
    assert "Expected `int` >= 1 - at `$.parcel.weight`" in third


def test_a_schema_has_the_definitions_of_all_its_parts():
    """Those of a pydantic model inside stand at the root, where its references look for them."""
    schema = schema_of(Parcel)
    assert set(schema["$defs"]) >= {"Street"}
    assert schema["properties"]["weight"] == {"type": "integer", "minimum": 1, "description": "in kg"}
    assert schema_of(Address)["$defs"]["Street"]["properties"] == {"name": {"title": "Name", "type": "string"}}


def test_a_pydantic_model_as_a_whole_is_parsed():
    """It is checked by its own rules."""
    assert parsed('{"street": {"name": "a"}, "number": 1}', Address) == Address(street=Street(name="a"), number=1)
    with pytest.raises(SchemaError, match="greater than 0"):
        parsed('{"street": {"name": "a"}, "number": 0}', Address)


class Due(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    day: date
    mood: Mood
    items: tuple[int, ...]


class Plan(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    first: Due


def test_a_strict_pydantic_model_takes_what_its_schema_says():
    """JSON has no dates, enums and tuples: as an argument, in a list of them, and as the answer."""
    got = []

    @tool
    async def remind(due: Due, others: list[Due], by_name: dict[str, Due]) -> str:
        got.append((due, others, by_name))
        return "noted"

    agent = ChatAgent("clerk", "m", tools=[remind], response_type=Plan)
    plain = {"day": "2026-01-31", "mood": "bad", "items": [1, 2]}
    due = Due(day=date(2026, 1, 31), mood=Mood.BAD, items=(1, 2))

    async def scenario(call, model):
        assert (await agent.workflow.run("plan", **call)).output == Plan(first=due)

    calls = [
        ToolCall("remind", {"due": plain, "others": [plain], "by_name": {"a": plain}}),
        ToolCall("remind", {"due": {**plain, "items": ["1"]}, "others": [], "by_name": {}}),
    ]
    model = talk([calls, json.dumps({"first": plain})], scenario)
    assert got == [(due, [due], {"a": due})]
    assert "Input should be a valid integer" in told(model)[1]


def test_what_json_cannot_say_is_refused():
    """As a schema and as a result."""
    with pytest.raises(SchemaError):
        schema_of(type)
    with pytest.raises(SchemaError):
        as_text(object())
    assert as_text(Address(street=Street(name="a"), number=1)) == '{"street":{"name":"a"},"number":1}'
