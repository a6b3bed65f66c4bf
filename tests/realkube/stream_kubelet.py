"""A stand-in for the kubelet that an API server asks for exec, attach and port-forward: commands run beside the test."""

import asyncio
import os
import socket
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import uvicorn

from fleet.kube import pki
from fleet.kube.server.paths import Target
from fleet.kube.server.upgrades import Upgradable
from simulator.apiserver import pod_streams
from simulator.streaming.source import Entered, NotEntered

_NAMES = {"input": "stdin", "output": "stdout", "error": "stderr"}


class Beside:
    """Pods without isolation, whose loopback is this machine's."""

    def enter(self, namespace: str, name: str, command: list[str], *, stdin: bool, tty: bool) -> Entered:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        pipes = [os.dup(pipe.fileno()) if pipe else None for pipe in (process.stdin, process.stdout, process.stderr)]
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        return Entered(process, *pipes)

    def connect(self, namespace: str, name: str, port: int) -> socket.socket:
        try:
            return socket.create_connection(("127.0.0.1", port), 5)
        except OSError as e:
            raise NotEntered(str(e)) from e

    def read(self, namespace: str, name: str, offset: int) -> tuple[bytes, bool] | None:
        return (b"" if offset else b"before\n"), False


class StreamKubelet:
    def __init__(self, home: Path) -> None:
        files = pki.ensure(home / "stream-kubelet", datetime.now(UTC), ["kubelet"])
        config = uvicorn.Config(
            self._answer,
            http=Upgradable,
            interface="asgi3",
            ssl_certfile=str(files.certificate),
            ssl_keyfile=str(files.key),
            log_level="error",
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def start(self) -> None:
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(60)

    async def _answer(self, scope, receive, send) -> None:
        _, verb, namespace, name, *container = scope["path"].split("/")
        query = [(_NAMES.get(key, key), value) for key, value in parse_qsl(scope["query_string"].decode())]
        scope = {**scope, "query_string": urlencode(query).encode()}
        pod = {
            "metadata": {"name": name},
            "spec": {"nodeName": "n1", "containers": [{"name": (container or ["main"])[0]}]},
            "status": {"phase": "Running"},
        }
        target = Target(None, namespace, name, verb.lower())
        await pod_streams.answer(scope, send, target, pod, Beside(), asyncio.Event())
