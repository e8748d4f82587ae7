"""Import of checkpoint files that `agent-framework-core` has written.

The files are hostile here: `child` reads them in a process of its own, where nothing is built, called or imported; the
other modules make legacy runs of what it found. docs/import-agent-framework.md tells the whole.
"""
