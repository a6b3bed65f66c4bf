"""Runs a tool quietly: its output is kept, and shown only as the reason when it fails.

A tool never outlives the command that started it, whether that ends by Ctrl-C, by a signal or by ``kill -9``.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy.bootstrap import problems
from deploy.supervisor import die_with_parent


def run(argv: Sequence[str | Path], *, cwd: Path, doing: str, env: Mapping[str, str] | None = None) -> str:
    """What the tool printed; a failure becomes a ``Problem``."""
    with owned(argv, cwd=cwd, doing=doing, env=env) as process:
        return output(process, doing)


def output(process: subprocess.Popen[str], doing: str) -> str:
    """Wait for the tool's end; a failure becomes a ``Problem``."""
    printed, complaint = process.communicate()
    if process.returncode:
        raise problems.of_output(complaint or printed, doing)
    return printed


@contextmanager
def owned(
    argv: Sequence[str | Path],
    *,
    cwd: Path,
    doing: str,
    env: Mapping[str, str] | None = None,
    stderr: int = subprocess.STDOUT,
) -> Iterator[subprocess.Popen[str]]:
    """A started tool, whose whole process group is gone when the block is left."""
    words = [str(part) for part in argv]
    program = shutil.which(words[0])
    if program is None:
        raise problems.Problem(f"I could not {doing}: there is no program {words[0]}.")
    process = subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            str(die_with_parent.__file__),
            die_with_parent.GROUP,
            str(os.getpid()),
            program,
            *words[1:],
        ],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        errors="replace",
        process_group=0,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
