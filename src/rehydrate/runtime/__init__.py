"""The runtime: opens, claims, drives and closes turns; obeys the engine; calls user code."""
