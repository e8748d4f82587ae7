"""P8: what failed, was cancelled or timed out leaves no trace, and no effect shows before its barrier."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.proof.supersteps import Supersteps


@pytest.mark.promise("P8", "histories of messages, faults and crashes beside a model")
@pytest.mark.parametrize("examples", [8, pytest.param(600, marks=pytest.mark.proof)])
def test_a_run_stands_as_its_model_after_every_call(examples, tried):
    """State, outputs, and what every handler reads are those of a small model of supersteps."""
    options = settings(
        max_examples=examples, stateful_step_count=8, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck), print_blob=True, phases=[Phase.generate],
        report_multiple_bugs=False,
    )  # fmt: skip
    run_state_machine_as_test(Supersteps, settings=options)
    tried(examples)
