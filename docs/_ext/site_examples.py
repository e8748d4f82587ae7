"""Examples: pages write links to programs of the checkout; the site has a page for each, with its source.

Only programs in the folder of examples, which lies beside the pages; any other file outside of them stops the build.
"""

from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge
from sphinx.util.osutil import relative_uri

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def lead_to_pages(app: Sphinx, doctree: nodes.document) -> None:
    """Make links to programs links to their pages."""
    docname = app.env.docname
    for link in list(doctree.findall(addnodes.download_reference)):
        program = (Path(app.env.doc2path(docname)).parent / link["reftarget"]).resolve()
        if program.parent != FOLDER:
            raise ValueError(f"{docname} links to {link['reftarget']}, of which the site has no page")
        page = f"examples/{program.stem}"
        uri = relative_uri(app.builder.get_target_uri(docname), app.builder.get_target_uri(page))
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, object], str]]:
    """A page for each program."""
    bridge = app.builder.highlighter
    assert isinstance(bridge, PygmentsBridge)
    for program in sorted(FOLDER.glob("*.py")):
        block = bridge.highlight_block(program.read_text(encoding="utf-8"), "python")
        body = f"<h1>{program.name}</h1>\n{block}"
        yield f"examples/{program.stem}", {"title": program.name, "body": body, "display_toc": False}, "page.html"


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", lead_to_pages, priority=100)  # before what is linked to is collected for downloads
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
