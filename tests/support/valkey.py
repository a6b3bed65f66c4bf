"""A Valkey server of the tests' own, the same that ``up`` starts: on a free port of 127.0.0.1, deleted afterwards."""

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.supervisor import broker
from deploy.supervisor.probes import Probe
from tests.support.free_ports import free_port

_STARTS_S = 60.0


@contextmanager
def started() -> Iterator[str]:
    """Yields its URL without a database's number; empty where there is no server for this machine, as with ``up``."""
    home = Path(tempfile.mkdtemp(prefix="convoy-valkey-"))
    chosen = broker.choose({}, free_port(), "password-of-the-tests")
    spec = chosen.spec(home)
    try:
        if spec is None:
            yield ""
            return
        with subprocess.Popen(spec.argv, stdout=subprocess.DEVNULL) as server:
            deadline = time.monotonic() + _STARTS_S
            while not asyncio.run(_answers(spec.ready)):
                assert server.poll() is None and time.monotonic() < deadline, "Valkey does not start"
                time.sleep(0.05)
            try:
                yield chosen.url.rpartition("/")[0]
            finally:
                server.kill()
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _answers(probe: Probe) -> bool:
    return await probe()
