"""What the processes of pods have printed as JSON, one event a line."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def records(logs: Path) -> list[dict[str, Any]]:
    """Pod by pod. Logs of a pod may go, and a line may grow, while they are read."""
    lines = [line for text in _texts(logs) for line in text.splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.startswith('{"event"') and line.endswith("\n")]


def _texts(logs: Path) -> Iterator[str]:
    for folder, _, names in os.walk(logs):
        for name in names:
            if name.endswith(".log"):
                with contextlib.suppress(FileNotFoundError):
                    yield Path(folder, name).read_text()
