"""Statements that are asked all the time, built once: Django takes longer to write one than a database to answer it.

What is kept is the text alone, which depends on the models and on nothing in the database. The values are put in anew each
time, converted by their fields as Django would, and the answer is read by Django's own converters. Where a query set compares
with a value, None is equal to nothing, as in SQL, and not ``IS NULL`` as in Django.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models import QuerySet
from django.db.models import query as _django
from django.db.models.expressions import Expression
from django.db.models.sql import UpdateQuery

from fleet.db import value_lists

M = TypeVar("M", bound=models.Model)
T = TypeVar("T")
if TYPE_CHECKING:
    Field = models.Field[Any, Any]
else:
    Field = models.Field
_populators: Any = _django.get_related_populators  # the stubs are of Django 6, where it takes more
_named: Any = vars(_django)["create_namedtuple_class"]  # which the stubs leave out
KEY: Final[Field] = models.BigIntegerField()
NUMBER: Final[Field] = models.IntegerField()
TEXT: Final[Field] = models.TextField()
TIME: Final[Field] = models.DateTimeField()
JSON: Final[Field] = models.JSONField()
UID: Final[Field] = models.UUIDField()


@dataclass(frozen=True, slots=True)
class _Parameter:
    """Stands in a text's parameters for a value to come."""

    name: str
    field: Field

    def of(self, values: Mapping[str, Any], connection: Any) -> Any:
        return self._converted(values[self.name], connection)

    def _converted(self, value: Any, connection: Any) -> Any:
        return None if value is None else self.field.get_db_prep_value(value, connection)


class _ListParameter(_Parameter):
    """Stands for a list, which is one parameter however long it is."""

    def of(self, values: Mapping[str, Any], connection: Any) -> Any:
        converted = [self._converted(value, connection) for value in values[self.name]]
        return value_lists.parameter(converted, connection.vendor)


class _Slot(Expression):
    def __init__(self, parameter: _Parameter) -> None:
        super().__init__(output_field=parameter.field)
        self.parameter = parameter

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self.parameter]


class _ListSlot(_Slot):
    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return value_lists.PLACES[connection.vendor], [self.parameter]


Param = Callable[[str, Field], Any]
"""The place of a value in a statement: its name, and the field that converts it. Lists stand in `IN` conditions only."""


@dataclass(slots=True)
class _Text:
    """One statement as it is sent; without ``sql`` it can match nothing and is not sent.

    It holds nothing of the connection it was written with: that is a thread's, and would outlive it here.
    """

    sql: str
    parameters: Sequence[Any]
    converters: Mapping[int, tuple[Sequence[Callable[..., Any]], Any]]
    info: Any = None
    select: Any = ()

    def bound(self, values: Mapping[str, Any], wrapped: Any) -> list[Any]:
        return [each.of(values, wrapped) if isinstance(each, _Parameter) else each for each in self.parameters]


class _Statement:
    """What all have in common: a text for each choice of the lists that are empty, which Django leaves out."""

    def __init__(self) -> None:
        self._texts: dict[tuple[object, ...], _Text] = {}

    def _text(self, values: Mapping[str, Any], wrapped: Any) -> _Text:
        key = (
            wrapped.vendor,
            *[(name, bool(value)) if isinstance(value, list | tuple) else name for name, value in values.items()],
        )
        if (text := self._texts.get(key)) is None:
            text = self._texts[key] = self._written(_param(values), wrapped)
        return text

    def _written(self, param: Param, wrapped: Any) -> _Text:
        raise NotImplementedError


class Rows(_Statement, Generic[M]):
    """A query. ``build`` makes the query set, with ``param`` for the values that come each time."""

    def __init__(self, build: Callable[[Param], "QuerySet[M, Any]"]) -> None:
        super().__init__()
        self._build = build

    def values(self, **values: Any) -> list[tuple[Any, ...]]:
        """The rows as tuples, in the order of the query set's columns."""
        wrapped = _connection()
        text = self._text(values, wrapped)
        rows = _fetched(text, values, wrapped)
        return [tuple(row) for row in _converted(text, rows, wrapped)] if text.converters else rows

    def objects(self, **values: Any) -> list[M]:
        """The rows as objects."""
        wrapped = _connection()
        text = self._text(values, wrapped)
        rows = _fetched(text, values, wrapped)
        if not rows:
            return []
        return list(_instances(text, _converted(text, rows, wrapped) if text.converters else rows, wrapped))

    def _written(self, param: Param, wrapped: Any) -> _Text:
        compiler = self._build(param).query.get_compiler(connection=wrapped)
        try:
            sql, parameters = compiler.as_sql()
        except EmptyResultSet:
            return _NOTHING
        if compiler.has_extra_select:
            raise ValueError(
                "a distinct query whose order has other columns returns these as well: end it with order_by()"
            )
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        every = compiler.get_converters(columns).items()
        converters = {at: _plainly(convert, expression, wrapped.ops) for at, (convert, expression) in every}
        return _Text(sql, parameters, converters, compiler.klass_info, compiler.select)


def named(rows: "QuerySet[M, Any]") -> list[Any]:
    """The rows of ``values_list(named=True)``, read as those of a statement that is kept; this one is written anew."""
    fields: Sequence[str] = vars(rows)["_fields"]
    new, names = tuple.__new__, _named(*fields)
    return [new(names, row) for row in Rows(lambda _: rows).values()]


class Update(_Statement):
    """An update of the rows of a query set; ``changes`` are values, expressions, or what ``param`` returns."""

    def __init__(self, build: Callable[[Param], tuple["QuerySet[Any, Any]", Mapping[str, Any]]]) -> None:
        super().__init__()
        self._build = build

    def run(self, **values: Any) -> int:
        """Returns how many rows it matched."""
        return self._sent(values, "", lambda cursor: int(cursor.rowcount)) or 0

    def returning(self, column: str, **values: Any) -> list[Any]:
        """What this column has now in the rows it matched, as the database says it."""
        tail = f' RETURNING "{column}"'
        return self._sent(values, tail, lambda cursor: [value for (value,) in cursor.fetchall()]) or []

    def _sent(self, values: Mapping[str, Any], tail: str, read: Callable[[Any], T]) -> T | None:
        wrapped = _connection()
        text = self._text(values, wrapped)
        if not text.sql:
            return None
        with wrapped.cursor() as cursor:
            cursor.execute(text.sql + tail, text.bound(values, wrapped))
            return read(cursor)

    def _written(self, param: Param, wrapped: Any) -> _Text:
        rows, changes = self._build(param)
        query: Any = rows.query.chain(UpdateQuery)
        query.add_update_values(dict(changes))
        query.annotations = {}
        try:
            sql, parameters = query.get_compiler(connection=wrapped).as_sql()
        except EmptyResultSet:
            return _NOTHING
        return _Text(sql, parameters, {})


_NOTHING = _Text("", (), {})


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _param(values: Mapping[str, Any]) -> Param:
    def param(name: str, field: Field) -> Any:
        if not _is_list(values[name]):
            return _Slot(_Parameter(name, field))
        return _ListSlot(_ListParameter(name, field)) if values[name] else []

    return param


def _connection() -> Any:
    """The thread's own connection: Django's proxy for it would look it up again with every attribute."""
    return connections[DEFAULT_DB_ALIAS]


def _fetched(text: _Text, values: Mapping[str, Any], wrapped: Any) -> list[tuple[Any, ...]]:
    if not text.sql:
        return []
    with wrapped.cursor() as cursor:
        cursor.execute(text.sql, text.bound(values, wrapped))
        return list(cursor.fetchall())


def _plainly(
    convert: Sequence[Callable[..., Any]], expression: Any, ops: Any
) -> tuple[Sequence[Callable[..., Any]], Any]:
    """The converters of a column; those of JSON, of which rows have many, without Django's question for what it may be else."""
    field = getattr(expression, "target", None)
    if type(field) is models.JSONField and field.decoder is None and list(convert) == [field.from_db_value]:
        return [_of_json], expression
    return [_of_any(each, ops) for each in convert], expression


def _of_any(convert: Callable[..., Any], ops: Any) -> Callable[..., Any]:
    """A converter of the database's own, with the connection that it is called with instead of the one it came from."""
    if getattr(convert, "__self__", None) is not ops:
        return convert
    function = cast("MethodType", convert).__func__
    return lambda value, expression, connection: function(connection.ops, value, expression, connection)


def _of_json(text: str, _expression: Any, _connection: Any) -> Any:
    make = _EMPTY.get(text)
    return json.loads(text) if make is None else make()


_EMPTY: Mapping[str, Callable[[], Any]] = {"{}": dict, "[]": list}


def _converted(text: _Text, rows: Sequence[tuple[Any, ...]], wrapped: Any) -> list[list[Any]]:
    """No converter makes anything but None of None, which is what most rows have in most columns of JSON."""
    converted = list(map(list, rows))
    for at, (convert, expression) in text.converters.items():
        for row in converted:
            if (value := row[at]) is None:
                continue
            for each in convert:
                value = each(value, expression, wrapped)
            row[at] = value
    return converted


def _instances(text: _Text, rows: Sequence[Sequence[Any]], wrapped: Any) -> Any:
    """As Django's own `ModelIterable` makes objects of rows."""
    info, select = text.info, text.select
    at = info["select_fields"]
    first, end = at[0], at[-1] + 1
    names = [column.target.attname for column, *_ in select[first:end]]
    related = _populators(info, select, wrapped.alias)
    for row in rows:
        instance = info["model"].from_db(wrapped.alias, names, row[first:end])
        for each in related:
            each.populate(row, instance)
        yield instance
