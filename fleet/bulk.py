"""Writes other values into many rows with one statement; it knows neither what the rows are nor why they change.

Django's ``bulk_update`` builds one CASE for each row, which costs a millisecond a row. An UPDATE that joins VALUES says the
same on PostgreSQL and SQLite and costs a fiftieth.
"""

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

from django.db import connection, models

M = TypeVar("M", bound=models.Model)
_VARIABLES = 30_000
"""In one statement; SQLite takes 32,766, PostgreSQL 65,535."""


def update(rows: Sequence[M], columns: Sequence[str]) -> None:
    """Stores these fields of the rows, and those that follow them; rows that are gone stay gone."""
    if not rows:
        return
    columns = [*columns, *(each.name for each in rows[0]._meta.fields if getattr(each, "follows", "") in columns)]
    at_once = _VARIABLES // (len(columns) + 1)
    for start in range(0, len(rows), at_once):
        _update(rows[start : start + at_once], columns)


def _update(rows: Sequence[M], columns: Sequence[str]) -> None:
    meta = rows[0]._meta
    key = meta.pk
    fields = [key, *(meta.get_field(name) for name in columns)]
    quote = connection.ops.quote_name
    places = f"({', '.join(['%s'] * len(fields))})"
    # PostgreSQL takes the types of VALUES from its first row.
    types = [field.cast_db_type(connection) for field in fields]
    typed = f"({', '.join(f'CAST(%s AS {each})' for each in types)})"
    first = typed if connection.vendor == "postgresql" else places
    values = ", ".join([first, *[places] * (len(rows) - 1)])
    names = [quote(field.column) for field in fields]
    sets = ", ".join(f"{name} = given.{name}" for name in names[1:])
    table, given = quote(meta.db_table), f"given ({', '.join(names)})"
    same = f"{table}.{names[0]} = given.{names[0]}"
    sql = f"WITH {given} AS (VALUES {values}) UPDATE {table} SET {sets} FROM given WHERE {same}"  # noqa: S608
    told = ([field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields] for row in rows)
    with connection.cursor() as cursor:
        cursor.execute(sql, list(chain.from_iterable(told)))
