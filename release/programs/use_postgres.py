"""The extra `postgres`: a run in a database, by a URL and out of a pool."""

import os

from paused_run import pause_and_resume

from rehydrate import PostgresCheckpointStorage

schema = f"extras_{os.getpid()}"
pause_and_resume(lambda: PostgresCheckpointStorage(os.environ["DATABASE_URL"], schema=schema))

from psycopg_pool import ConnectionPool  # noqa: E402  (without the extra the line above says what to install)

with ConnectionPool(os.environ["DATABASE_URL"], min_size=1, open=True) as pool:
    pause_and_resume(lambda: PostgresCheckpointStorage(pool, schema=f"{schema}_pool"))
print("works")
