"""Idempotency keys on a PostgreSQL store, as over the others. A proof: the contract has what a store makes of them."""

import pytest

from tests.call.conftest import world  # noqa: F401  (a fixture)
from tests.call.test_idempotency_key import *  # noqa: F403
from tests.postgres.test_calls import anywhere, store  # noqa: F401  (fixtures)

pytestmark = pytest.mark.proof
