"""The step `lowest`: the tests on the lowest releases that pyproject.toml allows, on the lowest Python.

Its environment stays in `.venv-lowest`, for one who looks into a failure.
"""

import os
import subprocess
import sys
from pathlib import Path

from release.declared import DEV, ROOT, Declared, lowest
from release.environments import Environment, FailedError, interpreter

FOLDER = ROOT / ".venv-lowest"


def on_lowest(project: Declared) -> str:
    """Install the lowest of everything and run the tests; return what was done. Raises `FailedError`.

    `TESTS` in the environment names some of them, such as `tests/codecs tests/engine`.
    """
    version = project.requires_python.removeprefix(">=")
    python = interpreter(version)
    if python is None:
        raise FailedError(f"the lowest releases are for Python {version}, which this machine does not have")
    pins = lowest(project.all_needs())
    environment = Environment(FOLDER, python)
    constraints = FOLDER / "lowest.txt"
    constraints.write_text("\n".join(pins) + "\n")
    environment.install("--constraint", str(constraints), "--editable", f"{ROOT}[{DEV}]")
    there = environment.installed()
    tests = os.environ.get("TESTS", "").split()
    _run_tests(environment.python, tests)
    shown = ", ".join(f"{name} {found}" for name, found in sorted(there.items()) if _is_needed(project, name))
    return f"{' '.join(tests) or 'all tests'} on Python {version} with {shown}"


def _run_tests(python: Path, tests: list[str]) -> None:
    # What they print is for the reader at once: they take minutes.
    done = subprocess.run([python, "-m", "pytest", "-q", "-n", "3", *tests], cwd=ROOT, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise FailedError(f"the tests failed on the lowest releases; look with {python} -m pytest")


def _is_needed(project: Declared, name: str) -> bool:
    needs = [*project.needs, *(need for extra in project.offered for need in project.extras[extra])]
    return name.lower().replace("_", "-") in {need.name.lower().replace("_", "-").replace(".", "-") for need in needs}
