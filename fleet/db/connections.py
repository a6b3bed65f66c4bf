"""Database connections of threads that live long: returned to the pool of the process between two pieces of work.

On PostgreSQL a thread that kept its connection would keep others from having one: the pool is bounded
(`CONVOY_DATABASE_POOL`), and a process may have hundreds of threads that write now and then.
"""

from django.db import connection


def give_back() -> None:
    """Without a pool the connection is kept: opening one costs more."""
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()
