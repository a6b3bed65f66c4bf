"""Parsing into syntax trees that nothing interrupts, while threads of a test run parse as well.

A finalizer in the middle of it lets another thread parse, as a traceback that is logged or shown does, and CPython up to 3.11.7
then takes the depth of the one for that of the other: a SystemError (gh-106905), which in a report of a failed test ends the
run. So no garbage is collected meanwhile, and no other thread begins.
"""

import ast
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_parsing = threading.RLock()
_parse = ast.parse


@contextmanager
def uninterrupted() -> Iterator[None]:
    with _parsing:
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if is_collecting:
                gc.enable()


def _parse_uninterrupted(*args: Any, **options: Any) -> Any:
    with uninterrupted():
        return _parse(*args, **options)


def protect() -> None:
    """From now on, in this process."""
    ast.parse = _parse_uninterrupted
