"""The step `lowest`: the tests on the lowest releases that pyproject.toml allows, on the lowest Python.

All are tested together. An extra whose own needs forbid the lowest release of something else stands in `[tool.release]`
with its tests, and has an environment of its own. The environments stay in `.venv-lowest*`, for one who looks into a
failure.
"""

import os
import subprocess
import sys
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.declared import DEV, ROOT, Declared, lowest
from release.environments import Environment, FailedError, interpreter


def on_lowest(project: Declared) -> str:
    """Install the lowest of everything and run the tests; return what was done. Raises `FailedError`.

    `TESTS` in the environment names some of them, such as `tests/codecs tests/engine`.
    """
    version = project.requires_python.removeprefix(">=")
    python = interpreter(version)
    if python is None:
        raise FailedError(f"the lowest releases are for Python {version}, which this machine does not have")
    asked = os.environ.get("TESTS", "").split()
    together = [*project.needs, *needed_together(project)]
    shown = _tested("", python, together, together, [*asked, *left_out(project)])
    for extra, tests in project.apart.items() if not asked else ():
        pinned = [*project.needs, *project.needs_of(extra)]
        shown |= _tested(f"-{extra}", python, pinned, [*pinned, *project.needs_of(DEV)], tests)
    needs = {canonicalize_name(need.name) for extra in project.offered for need in project.needs_of(extra)}
    needs |= {canonicalize_name(need.name) for need in project.needs}
    told = ", ".join(f"{name} {found}" for name, found in sorted(shown.items()) if name in needs)
    return f"{' '.join(asked) or 'all tests'} on Python {version} with {told}"


def needed_together(project: Declared) -> list[Requirement]:
    """Return what the tests need, but for the extras that stand apart and other uses of what these bring."""
    apart = {canonicalize_name(need.name) for extra in project.apart for need in project.needs_of(extra)}
    return [need for need in project.needs_of(DEV, set(project.apart)) if canonicalize_name(need.name) not in apart]


def left_out(project: Declared) -> list[str]:
    """Return the options that leave out the tests of the extras that stand apart."""
    tests = [test for tests in project.apart.values() for test in tests]
    return [f"--deselect={test}" if "::" in test else f"--ignore={test}" for test in tests]


def _tested(
    name: str, python: str, pinned: Iterable[Requirement], needs: Iterable[Requirement], tests: Iterable[str]
) -> dict[str, str]:
    """Run tests in an environment of that name and return what is in it; only `pinned` has the lowest releases."""
    folder = ROOT / f".venv-lowest{name}"
    environment = Environment(folder, python)
    constraints, wanted = folder / "constraints.txt", folder / "requirements.txt"
    constraints.write_text("\n".join(lowest(pinned)) + "\n")
    wanted.write_text("\n".join(map(str, needs)) + "\n")
    environment.install("--constraint", str(constraints), "--requirement", str(wanted), "--editable", str(ROOT))
    # What they print is for the reader at once: they take minutes.
    command = [str(environment.python), "-m", "pytest", "-q", "-n", "3", *tests]
    if subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode != 0:
        raise FailedError(f"the tests failed on the lowest releases; look with {folder.name}/bin/python -m pytest")
    return {canonicalize_name(name): version for name, version in environment.installed().items()}
