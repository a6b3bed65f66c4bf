"""A copy of every row of the database, and its return: what restoring a backup does, on SQLite and PostgreSQL alike."""

from typing import Any

from django.apps import apps
from django.db import connection, transaction

from jobs.services.lifecycle.copies import provenance
from jobs.services.scheduling import loop

Backup = dict[str, tuple[list[str], list[tuple[Any, ...]]]]


def take() -> Backup:
    """Rows as the database has them, without the columns it computes."""
    saved: Backup = {}
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            fields = [field for field in model._meta.local_concrete_fields if not field.generated]
            columns = [field.column for field in fields if field.column]
            names = ", ".join(map(connection.ops.quote_name, columns))
            cursor.execute(f"SELECT {names} FROM {connection.ops.quote_name(model._meta.db_table)}")  # noqa: S608
            saved[model._meta.db_table] = columns, list(cursor.fetchall())
    return saved


def restore(saved: Backup) -> None:
    """The database is as it was, and every process was started anew."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table in saved:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")  # noqa: S608
        for table, (columns, rows) in saved.items():
            names = ", ".join(map(connection.ops.quote_name, columns))
            values = ", ".join(["%s"] * len(columns))
            cursor.executemany(
                f"INSERT INTO {connection.ops.quote_name(table)} ({names}) VALUES ({values})",  # noqa: S608
                rows,
            )
    loop._idle_caches.clear()
    provenance._reported.clear()
