"""`python -m release [STEP...]`: does the steps in their order and prints a table of what came of each.

Goes on behind a step that failed, so that one run shows all; the exit code is 1 where any has.
"""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from release.audit import audit
from release.building import dist
from release.declared import Declared, declared
from release.environments import FailedError
from release.extras import extras, pythons
from release.lowest import on_lowest

STEPS: Final[Mapping[str, Callable[[Declared], str]]] = {
    "dist": dist,
    "extras": extras,
    "pythons": pythons,
    "lowest": on_lowest,
    "audit": audit,
}


def main(asked: list[str]) -> int:
    """Do the steps that are asked for, or all."""
    unknown = [name for name in asked if name not in STEPS]
    if unknown:
        print(f"no such step: {', '.join(unknown)}; there are {', '.join(STEPS)}", file=sys.stderr)
        return 2
    project = declared()
    rows = [_row(name, step, project) for name, step in STEPS.items() if name in asked or not asked]
    print(f"\n{project.name} {project.version}")
    for name, good, seconds, said in rows:
        print(f"  {name:<8} {'good  ' if good else 'FAILED'} {seconds:>5.0f} s  {said}")
    return 0 if all(good for _, good, _, _ in rows) else 1


def _row(name: str, step: Callable[[Declared], str], project: Declared) -> tuple[str, bool, float, str]:
    print(f"{name} ...", file=sys.stderr, flush=True)
    started = time.monotonic()
    try:
        said, good = step(project), True
    except FailedError as error:
        print(f"{name} failed: {error}", file=sys.stderr, flush=True)
        said, good = str(error).splitlines()[0][:100], False
    return name, good, time.monotonic() - started, said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
