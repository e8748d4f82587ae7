"""Environments for one step of a release: made anew, with nothing in them but what is asked for.

Knows nothing of what is installed, nor of what runs there.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: What would let something of this checkout or of the user's own packages into an environment.
_LEAKS = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSTARTUP"}


class FailedError(Exception):
    """A check has failed; its text is for a person."""


class Environment:
    """A virtual environment in a folder, made by an interpreter."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.scripts = folder / "bin"
        self.python = self.scripts / "python"
        # Our pip can fill it, which spares a pip in it; one of another version of Python brings its own.
        self._shared = python == sys.executable
        run([python, "-m", "venv", "--clear", *(["--without-pip"] if self._shared else []), str(folder)])

    def install(self, *what: str) -> None:
        """Install something, as `pip install` takes it. Raises `FailedError`."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python)]
        run([*(pip if self._shared else [str(self.python), "-m", "pip"]), "install", "--quiet", *what])
        run([*(pip if self._shared else [str(self.python), "-m", "pip"]), "check"])

    def installed(self) -> dict[str, str]:
        """Return name and version of what is there."""
        listed = "import importlib.metadata as m; [print(d.metadata['Name'], d.version) for d in m.distributions()]"
        return dict(line.split() for line in run([str(self.python), "-I", "-c", listed]).splitlines())


def run(command: list[str], *, cwd: Path | None = None, more: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it printed. Raises `FailedError` with the end of that."""
    done = attempt(command, cwd=cwd, more=more)
    if done.returncode != 0:
        raise FailedError(f"`{' '.join(command)}` ended with {done.returncode}:\n{_end(done.stdout + done.stderr)}")
    return done.stdout


def attempt(
    command: list[str], *, cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, without what this process runs in, and return how it ended."""
    clean = {key: value for key, value in os.environ.items() if key not in _LEAKS}
    return subprocess.run(command, cwd=cwd, env={**clean, **(more or {})}, capture_output=True, text=True, check=False)


def interpreter(version: str) -> str | None:
    """Return the path of a Python of a version such as 3.12, or `None` where this machine has none that runs."""
    named = f"python{version}"
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in (shutil.which(named), *sorted(map(str, of_pyenv.glob(f"{version}.*/bin/{named}")), reverse=True)):
        if candidate is None:
            continue
        # A shim of pyenv is there for versions that are switched off, too.
        shown = attempt([candidate, "-c", "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"])
        if shown.returncode == 0 and shown.stdout.strip() == version:
            return candidate
    return None


def _end(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-30:])
