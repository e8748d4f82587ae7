"""What is printed as JSON: nothing that a terminal obeys, and JSON in every encoding."""

import io
import json

import pytest

from rehydrate.hosts.cli.output import Output


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_json_holds_no_control_characters_and_is_json_in_every_encoding(encoding):
    """C1 control characters are commands to a terminal, and no JSON has `\\x` or `\\U`."""
    said = {"text": "\x9b31m \x7f \u202e é 中 😀 \x1b"}
    raw = io.BytesIO()
    results = io.TextIOWrapper(raw, encoding)
    Output(as_json=True, results=results).document(said)
    line = raw.getvalue().decode(encoding)
    assert json.loads(line) == said
    assert line.rstrip().isprintable()
