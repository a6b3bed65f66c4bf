"""Celery's broker without a server: messages are files. kombu's own transport, with files that appear and vanish whole.

The original writes a message under its final name, so a worker may read half of it, and moves a taken one into the system's
temporary folder, which need not be the same file system. Here a message is renamed into place and renamed away: exactly one
worker gets it, and gets all of it.
"""

import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.encoding import bytes_to_str, str_to_bytes
from kombu.utils.json import dumps, loads


class Channel(filesystem.Channel):
    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]  # kombu uses both names
        name = f"{time.monotonic_ns():020d}_{uuid.uuid4().hex}.{queue}.msg"
        unfinished = Path(self.processed_folder) / name
        unfinished.write_bytes(str_to_bytes(dumps(payload)))
        unfinished.rename(Path(self.data_folder_out) / name)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        taken = Path(self.processed_folder)
        for path in sorted(Path(self.data_folder_in).glob(f"*.{queue}.msg")):
            mine = taken / f"taken-{path.name}"
            try:
                path.rename(mine)
            except FileNotFoundError:
                continue
            payload = loads(bytes_to_str(mine.read_bytes()))
            mine.unlink()
            return payload
        raise Empty


class Transport(filesystem.Transport):
    Channel = Channel
