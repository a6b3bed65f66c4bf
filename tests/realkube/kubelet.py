"""The door of a kubelet that an API server asks for logs, in front of the simulated one."""

import ssl
import threading
import time
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from fleet.kube import pki
from simulator.apiserver.pod_logs import LogSource

_FOLLOW_S = 0.05


class KubeletDoor:
    """Serves ``/containerLogs/NAMESPACE/POD/CONTAINER`` on a free port, for all nodes of a member."""

    def __init__(self, source: LogSource, home: Path) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Request, source))
        self._server.daemon_threads = True
        files = pki.ensure(home / "kubelet", datetime.now(UTC), ["kubelet"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="kubelet door", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Request(BaseHTTPRequestHandler):
    def __init__(self, source: LogSource, *connection: object) -> None:
        self._source = source
        super().__init__(*connection)

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        _, door, namespace, pod, _container = address.path.split("/")
        query = parse_qs(address.query)
        log = self._source.read(namespace, pod, 0) if door == "containerLogs" else None
        if log is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        text, ended = log
        offset = len(text)
        lines = text.splitlines(keepends=True)
        self.wfile.write(b"".join(lines[-int(query["tailLines"][0]) :]) if "tailLines" in query else text)
        while "follow" in query and not ended and (log := self._source.read(namespace, pod, offset)):
            text, ended = log
            offset += len(text)
            self.wfile.write(text)
            time.sleep(_FOLLOW_S)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""
