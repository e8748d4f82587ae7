"""What is printed as JSON: nothing that a terminal obeys, and JSON in every encoding."""

import io
import json

import pytest

from rehydrate.graph.drawing_parts import visible
from rehydrate.hosts.cli.output import Output, shown
from rehydrate.model.printable import printable
from rehydrate.service.differences import Difference


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


def test_what_a_terminal_obeys_is_written_out_in_one_way_everywhere():
    """In lines, drawings and comparisons; a letter beyond the first 65,536 is told from two others."""
    said, written = "a\x9b\x1b\u202e\U0001d173", r"a\x9b\x1b\u202e\U0001d173"
    compared = str(Difference("", "state", said, "", "removed", None, None))
    assert (printable(said), shown(said), visible(said)) == (written, written, written)
    assert compared == f"- state {written}: null"
