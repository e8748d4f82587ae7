"""Executors: ids, the choice of a handler, freezing, instances."""

import functools
import timeit
from dataclasses import dataclass
from typing import Literal

import pytest

from rehydrate.errors import EffectError, ExecutorDefinitionError, FrozenExecutorError, IdError
from rehydrate.graph.executor import Executor, executor, overridden_hooks
from rehydrate.graph.handlers import handler, response_handler


class Animal: ...


class Dog(Animal): ...


class Greet(Executor):
    def __init__(self, greeting: str = "hello", id: str | None = None) -> None:
        super().__init__(id)
        self.greeting = greeting

    @handler
    async def on_animal(self, animal: Animal) -> None: ...

    @handler
    async def on_dog(self, dog: Dog | None) -> None: ...

    @handler
    async def on_numbers(self, numbers: list[int]) -> None: ...

    @handler
    async def on_texts(self, texts: list[str]) -> None: ...

    @handler
    async def on_number(self, number: int | str) -> None: ...

    @handler
    async def on_yes(self, answer: Literal["yes"]) -> None: ...


class Count(Executor):
    def __init__(self, start: int, id: str | None = None) -> None:
        super().__init__(id)
        self.count = start

    @handler
    async def on_tick(self, tick: int) -> None:
        self.count += tick

    async def on_checkpoint_save(self) -> dict[str, object]:
        return {"count": self.count}

    async def on_checkpoint_restore(self, state: dict[str, object]) -> None:
        self.count = state["count"]


class Half(Executor):
    def on_checkpoint_save(self) -> dict[str, object]:
        return {}


def test_an_executor_has_an_id_or_the_name_of_its_class() -> None:
    """A subclass may forget to call its base, or be a dataclass."""

    @dataclass
    class Settings(Executor):
        retries: int

    assert (Greet(id="greet").id, Greet().id, Settings(3).id) == ("greet", "Greet", "Settings")


def test_a_function_has_an_id_or_its_name() -> None:
    """And it still can be called."""

    @executor
    def double(number: int) -> int:
        return 2 * number

    @executor(id="two times")
    def twice(number: int) -> int:
        return 2 * number

    assert (double.id, twice.id, double(4), twice(number=5)) == ("double", "two times", 8, 10)


@pytest.mark.parametrize("id", ["", "a/b", "a#1", "a\n", "x" * 201])
def test_an_id_has_a_form(id) -> None:
    """It stands in paths."""
    with pytest.raises(IdError):
        Greet(id=id)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (Dog(), "on_dog"),
        (Animal(), "on_animal"),
        (None, "on_dog"),
        ([1], "on_numbers"),
        (["a"], "on_texts"),
        (1, "on_number"),
        (True, "on_number"),
        ("yes", "on_yes"),
        ("no", "on_number"),
        (1.5, None),
        ([1, "a"], None),
    ],
)
def test_the_most_exact_handler_gets_the_message(message, name) -> None:
    """Asked twice, because the choice is remembered where the class decides."""
    greet = Greet()
    chosen = [greet.handler_for(message) for _ in range(2)]
    assert [spec and spec.name for spec in chosen] == [name, name]
    assert greet.can_take(message) is (name is not None)


def test_a_message_that_two_handlers_take_equally_is_an_error() -> None:
    """An empty list is a list of texts as much as of numbers, and nothing is chosen by chance."""
    with pytest.raises(ExecutorDefinitionError, match="'on_numbers' and 'on_texts' fit an empty list equally well"):
        Greet().handler_for([])


def test_a_known_class_is_found_fast() -> None:
    """The choice is on the way of every message: below 2 microseconds here, about 0.2 on a quiet machine."""
    greet, dog = Greet(), Dog()
    seconds = min(timeit.repeat(lambda: greet.handler_for(dog), number=1000, repeat=5))
    assert seconds < 0.002


class Ask(Executor):
    @handler
    async def on_text(self, text: str) -> None: ...

    @response_handler
    async def on_any(self, request: Animal, response: object) -> None: ...

    @response_handler
    async def on_bool(self, request: Animal, response: bool) -> None: ...

    @response_handler
    async def on_maybe(self, request: Dog, response: bool | None) -> None: ...


def test_the_most_exact_response_handler_is_chosen_by_both_types() -> None:
    """The response type counts as it is asked for."""
    ask = Ask()
    assert ask.response_handler_for(Animal(), bool).name == "on_bool"
    assert ask.response_handler_for(Animal(), int).name == "on_any"
    assert ask.response_handler_for(Dog(), bool | None).name == "on_maybe"


def test_two_response_handlers_that_fit_equally_are_an_error() -> None:
    """One is more exact in the request, the other in the response."""
    with pytest.raises(EffectError, match=r"'on_bool' and 'on_maybe' fit \(Dog, bool\) equally well"):
        Ask("ask").response_handler_for(Dog(), bool)


def test_a_request_that_no_response_handler_takes_is_an_error() -> None:
    """It names the pair and lists what there is."""
    with pytest.raises(EffectError) as caught:
        Ask("ask").response_handler_for("why?", str)
    assert str(caught.value) == (
        "executor 'ask': there is no response handler for (request type, response type) = (str, str); there are:"
        " (Animal, Any), (Animal, bool), (Dog, None | bool). Add a method with @response_handler that takes (self,"
        " request, response, ctx) of these types; only executor classes have them, a function executor cannot ask."
    )


def test_a_frozen_executor_refuses_assignments_and_names_the_ways_out() -> None:
    """Otherwise the value would leak into the next run."""
    greet = Greet("hi", "greet")
    greet.greeting = "good morning"
    greet.freeze()
    with pytest.raises(
        FrozenExecutorError, match=r"'greet'.*'greeting'.*set_state.*on_checkpoint_save.*cached_property"
    ):
        greet.greeting = "good night"
    with pytest.raises(FrozenExecutorError):
        del greet.greeting
    assert greet.greeting == "good morning"


def test_a_cached_property_of_a_frozen_executor_still_works() -> None:
    """Clients are made when they are first needed, once for all runs."""

    class Call(Executor):
        @functools.cached_property
        def client(self) -> object:
            return object()

    call = Call()
    call.freeze()
    assert call.client is call.client


def test_an_executor_with_both_hooks_has_instances() -> None:
    """Whoever overrides none has no state of its own; overriding one is a mistake that the build finds."""
    assert (Count(1).has_instance_state, Greet().has_instance_state, Half().has_instance_state) == (True, False, True)
    assert overridden_hooks(Half()) == ("on_checkpoint_save",)


def test_an_instance_is_made_like_its_prototype_and_is_not_frozen() -> None:
    """The prototype's id stays, its later changes and the freezing do not come along."""
    prototype = Count(3, id="count")
    prototype.count = 99
    prototype.freeze()
    one, other = prototype.new_instance(), prototype.new_instance()
    one.count += 1
    assert (one.id, one.count, other.count, prototype.count) == ("count", 4, 3, 99)
    with pytest.raises(FrozenExecutorError):
        prototype.count += 1


def test_a_class_can_make_its_instances_itself() -> None:
    """For instance to share a client with the prototype."""

    class Shares(Count):
        def new_instance(self):
            return type(self)(100, self.id)

    assert Shares(1, "shares").new_instance().count == 100


def test_instances_share_what_is_known_of_their_class() -> None:
    """One per scope would otherwise read and learn the same again."""
    prototype = Count(3)
    assert prototype.new_instance().handler_table is prototype.handler_table
    assert Greet().handler_table is not prototype.handler_table
