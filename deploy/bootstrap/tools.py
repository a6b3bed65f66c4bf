"""Runs a tool quietly: its output is kept, and shown only as the reason when it fails."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.bootstrap import problems


def run(argv: Sequence[str | Path], *, cwd: Path, doing: str, env: Mapping[str, str] | None = None) -> str:
    """What the tool printed; a failure becomes a ``Problem``."""
    try:
        done = subprocess.run(
            [str(part) for part in argv],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise problems.of_error(error, doing) from error
    if done.returncode:
        raise problems.of_output(done.stdout, doing)
    return done.stdout
