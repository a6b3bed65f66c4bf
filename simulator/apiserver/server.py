"""One simulated API server: a TLS port on loopback, a token, a folder for its state, and a thread that serves.

The port, the CA and the token are stored in the folder, so that a kubeconfig stays valid after a restart.
"""

import asyncio
import base64
import contextlib
import secrets
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn

from fleet.kube import pki
from fleet.kube.server.upgrades import Upgradable
from fleet.member.client import Access
from simulator.apiserver.app import Application
from simulator.apiserver.faults import Faults
from simulator.apiserver.faulty import Faulty
from simulator.apiserver.objects.catalog import Catalog
from simulator.apiserver.objects.store import Store
from simulator.apiserver.pod_logs import LogSource


class ApiServer:
    def __init__(
        self,
        name: str,
        home: Path,
        *,
        port: int = 0,
        token: str = "",
        version: str = "v1.31.0",
        faults: Faults | None = None,
        log_source: LogSource | None = None,
        measured: bool = False,
    ) -> None:
        """``measured``: whether it serves metrics of nodes and pods, as a cluster with a metrics server does."""
        self.name = name
        self.faults = faults or Faults()
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._home = home
        self.token = token or _kept(home / "token", secrets.token_urlsafe(32))
        self._pki = pki.ensure(home / "pki", datetime.now(UTC), [name])
        self.store = Store(home / "objects.sqlite3")
        self.catalog = Catalog(self.store)
        self._inner_token = secrets.token_urlsafe(32)
        self._version, self._log_source, self._measured = version, log_source, measured
        self._port = port
        self._server: _Server | None = None
        self._application: Application | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Serves in a thread of its own. Returns when connections are accepted."""
        listener = _listen(self._port or _number(self._home / "port"))
        self._port = listener.getsockname()[1]
        (self._home / "port").write_text(str(self._port))
        application = self._application = Application(
            self.catalog,
            self.store,
            self.faults,
            token=self.token,
            inner_token=self._inner_token,
            version=self._version,
            logs=self._log_source,
            measured=self._measured,
        )
        config = uvicorn.Config(
            Faulty(application, self.faults, application.is_inner, application.stopped),
            http=type("_HangsUp", (_Breakable,), {"stopped": application.stopped}),
            ssl_certfile=str(self._pki.certificate),
            ssl_keyfile=str(self._pki.key),
            log_level="error",
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_keep_alive=75,
            timeout_graceful_shutdown=2,
        )
        started = threading.Event()
        self._server = _Server(config, started, application)
        self._thread = threading.Thread(
            target=self._serve,
            args=(self._server, listener, application),
            name=f"apiserver-{self.name}",
            daemon=True,
        )
        self._thread.start()
        started.wait(10)

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._server.leave)
            self._thread.join(10)
        self.store.close()

    def rotate(self, token: str) -> None:
        """Replaces the token, as if credentials had expired. Open watches stay open."""
        self.token = token
        if self._application is not None:
            self._application.accept(token)

    def _serve(self, server: "_Server", listener: socket.socket, application: Application) -> None:
        async def main() -> None:
            loop = self._loop = asyncio.get_running_loop()

            def wake() -> None:
                with contextlib.suppress(RuntimeError):  # the server ends in this moment
                    loop.call_soon_threadsafe(application.wake)

            self.faults.listeners.add(wake)
            try:
                await server.serve(sockets=[listener])
            finally:
                self.faults.listeners.discard(wake)

        asyncio.run(main())

    def forget(self) -> None:
        """Compacts the history: older versions expire for watches and pages."""

        async def forget() -> None:
            self.store.forget()

        asyncio.run_coroutine_threadsafe(forget(), self._loop).result(10)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_pem(self) -> str:
        return self._pki.authority.read_text()

    def access(self) -> Access:
        return Access(server=self.url, ca_pem=self.ca_pem, token=self.token)

    def inner_access(self) -> Access:
        """Access for the member's own controllers, which are exempt from faults."""
        return Access(server=self.url, ca_pem=self.ca_pem, token=self._inner_token)

    def kubeconfig(self) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.name,
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name}}],
            "clusters": [
                {
                    "name": self.name,
                    "cluster": {
                        "server": self.url,
                        "certificate-authority-data": base64.b64encode(self.ca_pem.encode()).decode(),
                    },
                }
            ],
            "users": [{"name": self.name, "user": {"token": self.token}}],
        }


class _Server(uvicorn.Server):
    """A uvicorn server that sleeps until it is stopped. uvicorn itself wakes up ten times per second."""

    def __init__(self, config: uvicorn.Config, has_started: threading.Event, application: Application) -> None:
        super().__init__(config)
        self._has_started, self._application = has_started, application
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """Stops the server. Call it on the event loop."""
        self.should_exit = True
        self._leaving.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._has_started.set()

    async def main_loop(self) -> None:
        await self._leaving.wait()
        self._application.stop()


class _Breakable(Upgradable):
    """uvicorn's protocol that can close connections: during a response, through the scope, and when the server stops."""

    stopped: asyncio.Event

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's has it
        super().connection_made(transport)
        if self.stopped.is_set():  # its handshake took longer than the server lived
            transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["transport"] = self.transport  # type: ignore[typeddict-unknown-key]  # an extension of the scope for the application

    def shutdown(self) -> None:
        self.transport.abort()


def _listen(port: int) -> socket.socket:
    """A listening socket on the port, or on another one if the port is in use."""
    for wanted in dict.fromkeys((port, 0)):
        # With the protocol named, asyncio switches Nagle off on what it accepts.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
            return listener
        except OSError:
            listener.close()
    raise OSError("no free port on 127.0.0.1")


def _number(path: Path) -> int:
    return int(path.read_text()) if path.exists() else 0


def _kept(path: Path, fresh: str) -> str:
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(fresh)
    return path.read_text().strip()
