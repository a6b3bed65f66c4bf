"""Folders whose files start the same expensive server: one process of a run has them all, and starts it once.

A real kube-apiserver with its etcd and controllers takes five seconds of processor time to start, and a fortieth of a
processor from then on, in each process that runs a file of ``tests/contract``.
"""

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it has no types

FOLDERS = frozenset({"tests/contract", "tests/realkube"})


def scope_of(nodeid: str) -> str:
    """What one process runs whole: the folder or the file of the test."""
    folder = folder_of(nodeid)
    return folder if folder in FOLDERS else nodeid.partition("::")[0]


def folder_of(nodeid: str) -> str:
    return nodeid.partition("::")[0].rpartition("/")[0]


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # of a module without types
    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None
