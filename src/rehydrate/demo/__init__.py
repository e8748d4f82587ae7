"""An application of the library on real data: a licence audit of Python environments.

Nothing in the library imports from here.
"""
