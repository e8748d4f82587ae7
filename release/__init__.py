"""What has to be true of a release: `python -m release STEP...`, or `make release` for all steps and their table.

It reads pyproject.toml and lists nothing twice. It is no part of the package, and changes nothing but `dist/` and
environments of its own.
"""
