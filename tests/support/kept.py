"""Servers that the files of one folder share: started by the first that asks, ended after the folder's last test.

A fixture of the session would keep them to the end of the run, where an idle kube-apiserver with its etcd and controllers takes
a twenty-fifth of a processor from all other tests.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest

from tests.support.together import folder_of

_kept: dict[str, tuple[ExitStack, dict[str, Any]]] = {}


def for_folder(request: pytest.FixtureRequest, name: str, start: Callable[[], AbstractContextManager[Any]]) -> Any:
    """What ``start`` yields. For fixtures of modules: those of a session keep what has ended."""
    ends, values = _kept.setdefault(folder_of(request.node.nodeid), (ExitStack(), {}))
    if name not in values:
        values[name] = ends.enter_context(start())
    return values[name]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    folder = folder_of(item.nodeid)
    if nextitem is None or folder_of(nextitem.nodeid) != folder:
        ends, _ = _kept.pop(folder, (ExitStack(), {}))
        ends.close()
