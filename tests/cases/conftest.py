"""Fixtures of this folder: a place for runs, of each kind, and a fresh process to restore them in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.kit import KINDS, Place

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """A store of each kind, closed at the end."""
    found = Place(request.param, tmp_path)
    yield found
    found.close()


@pytest.fixture
def file_place(tmp_path):
    """A store in a file."""
    found = Place("sqlite", tmp_path)
    yield found
    found.close()


class FreshProcess:
    """A process of the worker; `ask` makes a call there and `send` and `reply` make it in two halves."""

    def __init__(self):
        command = [sys.executable, "-m", "tests.cases.worker"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, flow, told, **options):
        self.process.stdin.write(json.dumps({"flow": flow, "told": told, "options": options}) + "\n")
        self.process.stdin.flush()

    def reply(self):
        line = self.process.stdout.readline()
        assert line, "the fresh process ended"
        return json.loads(line)

    def ask(self, flow, told, **options):
        self.send(flow, told, **options)
        return self.reply()

    def close(self):
        with self.process:
            self.process.stdin.close()


@pytest.fixture(scope="session")
def fresh():
    """A process that has seen none of the runs; one serves all tests, because it keeps nothing between calls."""
    found = FreshProcess()
    yield found
    found.close()


@pytest.fixture
def another_fresh():
    """A second process, for two that meet."""
    found = FreshProcess()
    yield found
    found.close()
