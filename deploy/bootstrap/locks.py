"""Advisory file locks: they end with their holder, even when it is killed, so none is ever stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Waits for the lock on an existing or new file, and holds it."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def try_hold(path: Path) -> int | None:
    """The descriptor that holds the lock until closed, or None when another process has it."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def is_held(path: Path) -> bool:
    """Whether a living process holds it."""
    if not path.exists():
        return False
    fd = try_hold(path)
    if fd is None:
        return True
    os.close(fd)
    return False


def _open(path: Path) -> int:
    """An existing file needs only reading, so a lock works on files that must not be changed."""
    return os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)
