"""For readers that are programs: `llms.txt`, `llms-full.txt`, and every page as Markdown beside its HTML.

Pages are given as they are written; only what is documented from the source is put in as text.
"""

def setup(app):
    return {"parallel_read_safe": True, "parallel_write_safe": True}
