"""`python -m benchmarks` measures the core."""

from benchmarks.core import main

main()
