"""What the tests of the command line share: the app, and a command that has ended."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

APP = Path(__file__).with_name("claims_app.py")
#: A claim that is paid at once, and one that is asked about.
SMALL = '{"id": "c-1", "amount": 90}'
LARGE = '{"id": "c-2", "amount": 5000}'


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its result as JSON."""
        return json.loads(self.out)


Command = Callable[..., Done]


@contextmanager
def loaded_anew() -> Iterator[None]:
    """Forget afterwards the modules that a command has loaded, and where it looked for them."""
    paths, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = paths
    for name in set(sys.modules) - modules:
        if not name.startswith(("rehydrate", "rich", "click", "sqlite3")):
            del sys.modules[name]
