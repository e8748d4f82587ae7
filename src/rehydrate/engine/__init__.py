"""The engine: a pure transition over the records of a run; no I/O, no clock, no event loop, no user code."""
