"""The steps `extras` and `pythons`: the wheel in clean environments, each extra alone and missing, all on each Python.

What an extra brings is tried by the program that bears its name in `release/programs`. Without the extra the same
program must end with the words that say what to install.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from release.building import wheel
from release.declared import ROOT, Declared
from release.environments import Environment, FailedError, attempt, interpreter
from tests.postgres.server import server

PROGRAMS = ROOT / "release" / "programs"
#: What a program says at its end, when all was as it should be.
WORKS = "works"


def program_of(extra: str | None) -> Path:
    """Return the program that uses an extra; that of no extra uses what every installation has."""
    return PROGRAMS / f"use_{(extra or 'nothing').replace('-', '_')}.py"


def extras(project: Declared) -> str:
    """Try each extra in an environment of its own, and each without; return what was done. Raises `FailedError`."""
    built = wheel(project)
    offered = project.offered
    with _places() as (folder, url):
        bare = _environment(folder / "bare", str(built))
        wrong = _use(bare, None, url)
        for extra in offered:
            wrong += _miss(project, bare, extra, url)
            alone = _environment(folder / extra, f"{built}[{extra}]")
            wrong += _use(alone, None, url) + _use(alone, extra, url)
    if wrong:
        raise FailedError("\n".join(wrong))
    return f"alone and missing: {', '.join(offered)}"


def pythons(project: Declared) -> str:
    """Try all extras on each Python that the classifiers name and this machine has. Raises `FailedError`."""
    built = wheel(project)
    tried: list[str] = []
    absent: list[str] = []
    with _places() as (folder, url):
        for version in project.pythons:
            found = interpreter(version)
            if found is None:
                absent.append(version)
                continue
            whole = _environment(folder / version, f"{built}[{','.join(project.offered)}]", found)
            wrong = [line for extra in (None, *project.offered) for line in _use(whole, extra, url)]
            if wrong:
                raise FailedError(f"on Python {version}: " + "\n".join(wrong))
            tried.append(version)
    return f"all extras on Python {', '.join(tried)}" + (
        f"; not on this machine: {', '.join(absent)}" if absent else ""
    )


@contextmanager
def _places() -> Iterator[tuple[Path, str]]:
    """Give a folder and the URL of a PostgreSQL server."""
    with tempfile.TemporaryDirectory(prefix="rehydrate-extras-") as folder:
        (Path(folder) / "server").mkdir()
        with server(Path(folder) / "server") as url:
            yield Path(folder), url


def _environment(folder: Path, what: str, python: str | None = None) -> Environment:
    made = Environment(folder, python) if python else Environment(folder)
    made.install(what)
    return made


def _ended(environment: Environment, extra: str | None, url: str) -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as cwd:
        command = [str(environment.python), str(program_of(extra))]
        done = attempt(command, cwd=Path(cwd), more={"DATABASE_URL": url, "PYTHONWARNINGS": "error"})
    return done.returncode, (done.stdout + done.stderr).strip()


def _use(environment: Environment, extra: str | None, url: str) -> list[str]:
    code, said = _ended(environment, extra, url)
    if code == 0 and said.endswith(WORKS):
        return []
    return [f"{program_of(extra).name} in {environment.scripts.parent.name} ended with {code}:\n{said}"]


def _miss(project: Declared, bare: Environment, extra: str, url: str) -> list[str]:
    if not any(need.marker is None or need.marker.evaluate() for need in project.extras[extra]):
        return []  # this Python has by itself what the extra brings
    code, said = _ended(bare, extra, url)
    words = f"pip install '{project.name}[{extra}]'"
    if code != 0 and words in said:
        return []
    return [f"without the extra {extra!r} its program must fail and say {words}; it ended with {code}:\n{said}"]
