"""A list of values as one parameter of an `IN` condition, so that the text of a statement is the same for lists of any length.

psycopg splits a text at its parameters, and keeps what it has split only for texts with few of them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.signals import connection_created

PLACES = {"postgresql": "(%s)", "sqlite": "(SELECT value FROM json_each(%s))"}
"""What stands in the condition, by the database's vendor."""


@dataclass(frozen=True, slots=True)
class _Listed:
    values: Sequence[Any]


def parameter(values: Sequence[Any], vendor: str) -> Any:
    """The parameter for values that their fields have converted."""
    return _Listed(values) if vendor == "postgresql" else json.dumps(values)


def _register(connection: Any, **_: Any) -> None:
    if connection.vendor != "postgresql":
        return
    from psycopg.adapt import RecursiveDumper  # noqa: PLC0415 - takes long to load, and is there with the connection only

    class Dumper(RecursiveDumper):
        """Writes the values side by side, as Django has them written one by one."""

        def quote(self, obj: _Listed) -> bytes:
            return b", ".join(map(self._tx.as_literal, obj.values))

        def dump(self, obj: _Listed) -> bytes:
            raise NotImplementedError("only cursors that bind on the client take lists of values")

    connection.connection.adapters.register_dumper(_Listed, Dumper)


connection_created.connect(_register, dispatch_uid="fleet.db.value_lists")
