"""Benchmarks of the core: each line is measured beside its own floor, in the same run."""
