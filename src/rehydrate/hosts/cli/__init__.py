"""The command line `rehydrate` (extra `cli`): words and JSON in, text or JSON out, and an exit code.

Nothing is exported: `command_line.py` is its entrance, which `rehydrate.main` calls.
"""
