"""Text of anybody on its way to a person: nothing in it is obeyed by a terminal, or turns the direction of a line."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text on one line, with what is not printable written out: control characters, and those unseen."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
