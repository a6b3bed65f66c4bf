"""Durations in the database: a column of seconds becomes a length of time that can be added to a time."""

from typing import Any

from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Func


class Seconds(Func):
    """A whole number of seconds as a duration, on SQLite in microseconds, as Django stores durations there."""

    output_field = DurationField()
    template = "(%(expressions)s * interval '1 second')"
    arity = 1

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="(%(expressions)s * 1000000)", **context)


def later_by(at: str, seconds: str) -> "ExpressionWrapper[Any]":
    """The time in column ``at``, later by the seconds in another column."""
    return ExpressionWrapper(F(at) + Seconds(F(seconds)), output_field=DateTimeField())
