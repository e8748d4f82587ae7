"""What the tests of the command line share: the app, and a command that has ended."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

APP = Path(__file__).with_name("claims_app.py")


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
