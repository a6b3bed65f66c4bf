"""One child's output on disk, bounded: a full file becomes ``.1``, and the oldest is dropped.

A full disk must not take the product down: what cannot be written is lost, and writing resumes when it can.
"""

from pathlib import Path

LARGEST = 8 * 1024 * 1024
KEPT = 3


class LogFile:
    """Appends whole lines, each written at once so that a reader never waits for a buffer."""

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        self.path = path
        self.largest = largest

    def write(self, line: bytes) -> None:
        try:
            if self._size() + len(line) > self.largest:
                self._rotate()
            with self.path.open("ab", buffering=0) as out:
                out.write(line)
        except OSError:
            return

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _rotate(self) -> None:
        for number in range(KEPT - 1, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        if self.path.exists():
            self.path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
