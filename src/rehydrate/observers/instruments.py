"""The instruments: what is measured of calls, under which names and in which units.

Attributes of a measurement are few and of few values: never an id of a run.
"""

from __future__ import annotations

from typing import Final

from opentelemetry.metrics import Histogram, Meter

#: Seconds, from a superstep in memory to a run that a model answers.
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_BYTES: Final = (256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864)


class Instruments:
    """What is measured of calls."""

    def __init__(self, meter: Meter) -> None:
        def seconds(name: str, description: str) -> Histogram:
            return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=_SECONDS)

        self.run_duration = seconds("rehydrate.run.duration", "How long a call took, to its pause or end.")
        self.superstep_duration = seconds(
            "rehydrate.superstep.duration", "How long a superstep of a scope took, its commit included."
        )
        self.save_duration = seconds("rehydrate.checkpoint.save.duration", "How long the store took for a commit.")
        self.restore_duration = seconds(
            "rehydrate.checkpoint.restore.duration", "How long it took to load, check and decode a checkpoint."
        )
        self.save_size = meter.create_histogram(
            "rehydrate.checkpoint.save.size",
            "By",
            "Bytes of the records that a commit wrote.",
            explicit_bucket_boundaries_advisory=_BYTES,
        )
        self.open_requests = meter.create_up_down_counter(
            "rehydrate.open_request.count",
            "{request}",
            "Requests that calls opened, less those that they closed.",
        )
        self.conflicts = meter.create_counter(
            "rehydrate.conflicts", "{conflict}", "Calls and commits that met another one, and writes that conflict."
        )
        self.replayed_turns = meter.create_counter(
            "rehydrate.replayed_turns", "{turn}", "Calls that got the recorded result of a turn made before."
        )
