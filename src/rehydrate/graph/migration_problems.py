"""What can be wrong with the migrations that a builder was given.

Looks at them only; they are called when a run is restored.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from rehydrate.errors.definition import BuildProblem
from rehydrate.graph.problems import problem_at


def migration_problems(version: object, migrations: Mapping[object, object]) -> Iterator[BuildProblem]:
    """Give what is wrong with the migrations of a workflow."""
    highest = version - 1 if type(version) is int else None
    for number, function in migrations.items():
        place = f"migrate[{number!r}]"
        if type(number) is not int or number < 1 or (highest is not None and number > highest):
            action = (
                f"use the older versions as keys, so whole numbers from 1 to {highest or 'the one before version='}"
            )
            yield problem_at("migration-version", place, "brings up no older version", action)
        if not callable(function):
            yield problem_at("migration", place, f"is {function!r:.100}", "give a function that takes a MigrationView")
        elif inspect.iscoroutinefunction(function):
            yield problem_at("migration", place, "is async", "use a plain def: it only changes what it is given")
