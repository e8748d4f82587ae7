"""Parts of tests that run in a process of their own, because they may only be judged from outside."""

import os
import subprocess
import sys


def run_apart(module: str, *arguments: str) -> str:
    """Run a module of this folder and return what it prints; whatever else it does is a failure."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.codecs.{module}", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr[-2000:]) == (0, "")
    return done.stdout
