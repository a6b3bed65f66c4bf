"""Writes many rows with one statement; it knows neither what the rows are nor why they are written.

Django's ``bulk_update`` builds one CASE for each row, which costs a millisecond a row, and its ``bulk_create`` quotes every
value by itself. PostgreSQL takes new rows as a stream and new values as one JSON text, for a quarter of that; on SQLite an
UPDATE that joins VALUES says the same.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, connections, models, transaction

from fleet.db import fencing

M = TypeVar("M", bound=models.Model)
Values = Mapping[str, Any]
_VARIABLES = 30_000
"""In one statement; SQLite takes 32,766."""
_AT_ONCE = 500
_FEW = 2
"""Rows up to which one INSERT is less than a stream, which needs their keys beforehand."""


@transaction.atomic(savepoint=False)
def insert(rows: Sequence[M]) -> Sequence[M]:
    """Stores new rows and gives them their keys."""
    if connection.vendor != "postgresql" or len(rows) <= _FEW:
        return type(rows[0])._default_manager.bulk_create(rows, batch_size=_AT_ONCE) if rows else rows
    fields = _written(type(rows[0]), keyless=False)
    with connection.cursor() as cursor:
        for row, key in zip(rows, _keys(cursor, type(rows[0]), len(rows)), strict=True):
            row.pk, row._state.adding = key, False
        _stream(cursor, fields, ([getattr(row, field.attname) for field in fields] for row in rows))
    return rows


@transaction.atomic(savepoint=False)
def store(model: type[models.Model], rows: Sequence[Values], *, keyless: bool = False) -> Sequence[int]:
    """Stores new rows, each given as its values by field, all of the same fields; makes no objects of them.

    Returns their keys. With ``keyless`` the keys may be missing: many rows are then stored without fetching them.
    """
    if not rows:
        return []
    if connection.vendor != "postgresql" or len(rows) <= _FEW:
        return _insert_values(model, rows)
    fields = _written(model, keyless=keyless)
    with connection.cursor() as cursor:
        keys = [] if keyless else _keys(cursor, model, len(rows))
        values = zip(*(_column(field, rows, keys) for field in fields), strict=True)
        _stream(cursor, fields, map(list, values))
    return keys


@transaction.atomic(savepoint=False)
def upsert(rows: Sequence[models.Model], unique: Sequence[str], columns: Sequence[str]) -> None:
    """Stores rows; of one that is there already, by its ``unique`` fields, the ``columns`` become those that it has here."""
    if not rows:
        return
    model, quote = type(rows[0]), connection.ops.quote_name
    fields = _written(model, keyless=True)
    same, new = ([quote(_field(model, name).column) for name in names] for names in (unique, columns))
    tail = f"ON CONFLICT ({', '.join(same)}) DO UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in new)}"
    _insert_columns(model, fields, [[getattr(row, field.attname) for row in rows] for field in fields], tail)


def _insert_values(model: type[models.Model], rows: Sequence[Values]) -> list[int]:
    """What Django's own INSERT does, without objects of the rows."""
    fields, key = _written(model, keyless=True), connection.ops.quote_name(_field(model, "pk").column)
    return _insert_columns(model, fields, [list(_column(field, rows, ())) for field in fields], f"RETURNING {key}")


def _insert_columns(
    model: type[models.Model], fields: Sequence[Any], columns: Sequence[Sequence[Any]], tail: str
) -> list[int]:
    """One INSERT for as many rows as a statement takes; ``columns`` are the values of each field. Returns what it returns."""
    table, names = _quoted(model)
    place, inserted = f"({', '.join(['%s'] * len(fields))})", []
    written = [
        [field.get_db_prep_save(value, connection) for value in column]
        for field, column in zip(fields, columns, strict=True)
    ]
    values = list(zip(*written, strict=True))
    at_once = min(_AT_ONCE, _VARIABLES // len(fields))
    with connection.cursor() as cursor:
        for start in range(0, len(values), at_once):
            some = values[start : start + at_once]
            places = ", ".join([place] * len(some))
            cursor.execute(f"INSERT INTO {table} ({names}) VALUES {places} {tail}", list(chain.from_iterable(some)))  # noqa: S608
            inserted += [each for (each,) in cursor.fetchall()] if cursor.description else []
    return inserted


def _quoted(model: type[models.Model]) -> tuple[str, str]:
    """The table, and the columns that are written where the key is not."""
    quote = connection.ops.quote_name
    return quote(model._meta.db_table), ", ".join(quote(field.column) for field in _written(model, keyless=True))


def _field(model: type[models.Model], name: str) -> Any:
    return model._meta.pk if name == "pk" else model._meta.get_field(name)


def _column(field: Any, rows: Sequence[Values], keys: Sequence[int]) -> Iterable[Any]:
    """The value of a field in each row: its default where the rows do not have it."""
    if field.primary_key:
        return keys
    for name in (field.name, field.attname):
        if name in rows[0]:
            return map(itemgetter(name), rows)
    return (field.get_default() for _ in rows)


def _written(model: type[models.Model], *, keyless: bool) -> list[Any]:
    fields: Iterable[Any] = model._meta.concrete_fields
    return [field for field in fields if not (field.generated or (keyless and field.primary_key))]


def _stream(cursor: Any, fields: Sequence[Any], rows: Iterable[list[Any]]) -> None:
    quote = connection.ops.quote_name
    table, columns = quote(fields[0].model._meta.db_table), ", ".join(quote(field.column) for field in fields)
    encoders = [(at, encode) for at, encode in enumerate(map(_encoder, fields)) if encode is not None]
    fencing.verify()
    with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for row in rows:
            for at, encode in encoders:
                row[at] = encode(row[at])
            copy.write_row(row)


def _keys(cursor: Any, model: type[models.Model], count: int) -> list[int]:
    meta = model._meta
    numbers = "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)"
    cursor.execute(numbers, [connection.ops.quote_name(meta.db_table), meta.pk.column, count])
    return [key for (key,) in cursor.fetchall()]


def _encoder(field: Any) -> Callable[[Any], Any] | None:
    """What makes of a value of the field what PostgreSQL reads; None for most fields, whose values are written as they are."""
    if type(field) is models.JSONField:
        return partial(_json, field.encoder)
    if type(field) in _AS_IT_IS:
        return None
    return partial(field.get_db_prep_save, connection=connections[connection.alias])


def _json(encoder: type[json.JSONEncoder] | None, value: Any) -> str | None:
    """Most rows have nothing in most of their columns of JSON, which needs no encoder."""
    if value is None:
        return None
    if not value and type(value) in _NOTHING:
        return _NOTHING[type(value)]
    return json.dumps(value, cls=encoder)


_NOTHING: Mapping[type, str] = {dict: "{}", list: "[]"}
_AS_IT_IS = frozenset({
    models.BigAutoField, models.BigIntegerField, models.BooleanField, models.CharField, models.DateTimeField, models.ForeignKey,
    models.OneToOneField, models.IntegerField, models.PositiveIntegerField, models.UUIDField,
})  # fmt: skip


def update(rows: Sequence[M], columns: Sequence[str], *, while_null: str = "") -> None:
    """Stores these fields of the rows, and those that follow them; rows that are gone stay gone.

    With ``while_null`` rows whose field of that name has a value by now stay as they are.
    """
    if not rows:
        return
    meta = rows[0]._meta
    names = [*columns, *(each.name for each in meta.fields if getattr(each, "follows", "") in columns)]
    fields = [meta.pk, *(meta.get_field(name) for name in names)]
    write = _update_from_json if connection.vendor == "postgresql" else _update_from_values
    for start in range(0, len(rows), _VARIABLES // len(fields)):
        write(rows[start : start + _VARIABLES // len(fields)], fields, while_null)


def _update_from_json(rows: Sequence[M], fields: Sequence[Any], while_null: str) -> None:
    quote = connection.ops.quote_name
    values = [{field.column: getattr(row, field.attname) for field in fields} for row in rows]
    types = ", ".join(f"{quote(field.column)} {field.cast_db_type(connection)}" for field in fields)
    text = json.dumps(values, cls=_Exact)
    _execute(rows, fields, f"SELECT * FROM jsonb_to_recordset(%s) AS r ({types})", [text], while_null)  # noqa: S608


class _Exact(DjangoJSONEncoder):
    """Times to the microsecond, where Django's has milliseconds."""

    def default(self, value: object) -> Any:
        return value.isoformat() if hasattr(value, "isoformat") else super().default(value)


def _update_from_values(rows: Sequence[M], fields: Sequence[Any], while_null: str) -> None:
    values = ", ".join([f"({', '.join(['%s'] * len(fields))})"] * len(rows))
    parameters = ([field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields] for row in rows)
    _execute(rows, fields, f"VALUES {values}", list(chain.from_iterable(parameters)), while_null)


def _execute(rows: Sequence[M], fields: Sequence[Any], source: str, parameters: Sequence[Any], while_null: str) -> None:
    quote = connection.ops.quote_name
    table, names = quote(rows[0]._meta.db_table), [quote(field.column) for field in fields]
    sets = ", ".join(f"{name} = given.{name}" for name in names[1:])
    same = f"{table}.{names[0]} = given.{names[0]}"
    if while_null:
        field: Any = rows[0]._meta.get_field(while_null)
        same += f" AND {table}.{quote(field.column)} IS NULL"
    with_ = f"WITH given ({', '.join(names)}) AS ({source})"
    with connection.cursor() as cursor:
        cursor.execute(f"{with_} UPDATE {table} SET {sets} FROM given WHERE {same}", parameters)  # noqa: S608
