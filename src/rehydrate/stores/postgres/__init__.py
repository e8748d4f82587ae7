"""The PostgreSQL store: checkpoints in a schema of a database that any number of processes and machines share.

Only `storage` can be imported without psycopg; everything else is loaded when a store object is made.
"""

from __future__ import annotations

from .storage import PostgresCheckpointStorage

__all__ = ["PostgresCheckpointStorage"]
