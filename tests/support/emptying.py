"""Empties the database between tests that commit.

Django's flush clears every table and then makes all permissions anew: a hundred statements, whatever the test wrote. Here the
tables that hold rows are asked for in one statement and only those are emptied. Content types and permissions stay: they
follow from the models, which no test changes.
"""

from functools import cache
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

KEPT = {"django_content_type", "auth_permission"}


def after_test(case: Any) -> None:
    """Takes the place of ``TransactionTestCase._fixture_teardown``."""
    for alias in case._databases_names(include_mirrors=False):
        empty(connections[alias])


def empty(connection: BaseDatabaseWrapper) -> None:
    """In any order: constraints are checked at the commit."""
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        cursor.execute(_which(connection.alias))
        for (table,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")  # noqa: S608 - names of our own tables


@cache
def _which(alias: str) -> str:
    """A statement for the names of the tables that hold rows."""
    connection = connections[alias]
    tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT
    quote = connection.ops.quote_name
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quote(table)})"  # noqa: S608 - names of our own tables
        for table in sorted(tables)
    )
