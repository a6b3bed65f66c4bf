"""Whether the database has every migration of the code: asked by probes all the time, and before each start.

Django's own plan of what is missing costs as much as a hundred requests; it is made only where something is missing.
"""

from functools import cache

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def is_complete() -> bool:
    return of_code() <= MigrationRecorder(connection).applied_migrations().keys()


@cache
def of_code() -> frozenset[tuple[str, str]]:
    """Application and name of each; the code stays the same as long as the process lives."""
    return frozenset(MigrationLoader(None).graph.nodes)
