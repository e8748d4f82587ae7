"""How Sphinx builds the site from these pages: `make docs`, into build/docs.

The pages are plain Markdown that also reads well where the sources are hosted. What only the site needs is added while
it is built, by the extensions in `_ext`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "rehydrate"
author = "The rehydrate authors"
copyright = author  # noqa: A001  (Sphinx names it)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "site_navigation",
    "site_reference",
    "site_diagrams",
    "site_examples",
    "site_llms",
]
root_doc = "index"
exclude_patterns = ["_ext"]

# Pages
smartquotes = False  # quotation marks stay those that are typed
myst_heading_anchors = 4
highlight_language = "python"

# Reference: names come from the source, and nothing from the network.
nitpicky = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Plain": "Plain"}  # contains itself
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

# Look
html_theme = "furo"
html_title = "rehydrate"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_ext/static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_ext" / "search_scorer.js")
pygments_style = "a11y-light"  # every colour has a contrast of 4.5 or more to its ground
pygments_dark_style = "monokai"
html_theme_options = {"navigation_with_keys": True}
