"""One world of the simulation alone, with its whole trace: `python -m tests.proof.simulated SEED [--without KIND ...]`.

`--shrink` leaves out every kind of fault without which it still goes wrong.
"""

from __future__ import annotations

import argparse
import sys

from .simulated_world import KINDS, Report, World, simulate

#: So many lines of a trace are shown with a failure.
LAST = 40


def shrunk(seed: int, world_class: type[World] = World) -> frozenset[str]:
    """Return the kinds of faults that a world that goes wrong can do without."""
    without: frozenset[str] = frozenset()
    for kind in KINDS:
        if simulate(seed, without | {kind}, world_class).found:
            without |= {kind}
    return without


def told(report: Report, without: frozenset[str] = frozenset()) -> str:
    """Return what is said of a world that went wrong."""
    left_out = f" --without {' '.join(sorted(without))}" if without else ""
    lines = [f"seed {report.seed}:", *report.found, "the end of the trace:", *report.trace[-LAST:]]
    lines.append(f"run it alone: python -m tests.proof.simulated {report.seed}{left_out}")
    return "\n".join(lines)


def say(text: str) -> None:
    """Print."""
    sys.stdout.write(f"{text}\n")


def main(arguments: list[str]) -> int:
    """Run worlds, and print the trace of a single one."""
    parser = argparse.ArgumentParser(prog="tests.proof.simulated")
    parser.add_argument("seed", type=int)
    parser.add_argument("--to", type=int, help="run all seeds up to this one, and print those that go wrong")
    parser.add_argument("--without", nargs="*", default=[], choices=KINDS)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--digest", action="store_true", help="print the digest of the trace instead of it")
    given = parser.parse_args(arguments)
    without = frozenset(given.without)
    wrong = 0
    for seed in range(given.seed, (given.to or given.seed) + 1):
        report = simulate(seed, without)
        wrong += bool(report.found)
        if given.to is None and not given.digest:
            say("\n".join(report.trace))
        if report.found and given.shrink:
            without = shrunk(seed)
            report = simulate(seed, without)
        if report.found:
            say(told(report, without))
        elif given.digest:
            say(report.digest)
        else:
            say(f"seed {seed}: nothing was found; tried {dict(report.tried)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
