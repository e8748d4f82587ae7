"""The blocks of Python in the documentation run as they stand, page by page, in an empty folder."""

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from tests.docs.pages import ROOT, name_of, pages

BLOCKS = Sybil(parsers=[PythonCodeBlockParser()], path=str(ROOT), pattern="*.md")
WITH_BLOCKS = [page for page in pages() if "```python\n" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page run one after the other in one namespace; what they store lands in the current folder."""
    monkeypatch.chdir(tmp_path)
    document = BLOCKS.parse(page)
    document.namespace["__name__"] = page.stem
    ran = 0
    for block in document:
        block.evaluate()
        ran += 1
    assert ran > 0


def test_the_pages_that_must_have_blocks_have_some() -> None:
    """The first page and those on resuming and on checkpoints show what they say."""
    assert {"README.md", "docs/resume.md", "docs/checkpoint.md"} <= {name_of(page) for page in WITH_BLOCKS}
