"""Plain values: what a person or JSON can read, without any user type."""

from __future__ import annotations

from typing import TypeAlias

Plain: TypeAlias = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | None
