"""Another process's commit, right between two queries of ours: what a reader sees that is not of one moment."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import connection


def elsewhere(deed: Callable[[], object]) -> None:
    """On a connection of its own, and to its end."""

    def do() -> None:
        try:
            deed()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other:
        other.submit(do).result()


@contextmanager
def after_each_look_at(table: str, deed: Callable[[], object]) -> Iterator[None]:
    """The deed is done once, by another process as it were, right after the first query of that table."""
    done: list[str] = []

    def wrapped(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found = execute(sql, params, many, context)
        if f"FROM {table}" in sql.replace('"', "") and not done:
            done.append(sql)
            elsewhere(deed)
        return found

    with connection.execute_wrapper(wrapped):
        yield
    assert done
