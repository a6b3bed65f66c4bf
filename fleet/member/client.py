"""One member's API as a handful of verbs on plain dicts, over the official client's TLS and connection pool.

The typed models of the official package refuse manifests a server accepts (an integer ``cpu: 2``), so only its transport
is used. Speaks no policy: no retries, no caching, no knowledge of jobs. Every failure leaves as a `MemberError`.
"""

import contextlib
import copy
import io
import json
import os
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from urllib3 import HTTPHeaderDict
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool

from fleet import metrics
from fleet.member import addresses, answers, causes, deadlines, errors
from fleet.member.passing import Passing
from fleet.member.reading import (
    LONGEST_ANSWER,
    LONGEST_ANSWER_S,
    LONGEST_LIST_S,
    PAGE,
    TooLong,
    WatchEvent,
    error_body,
    lines,
    next_page,
    page,
    watch_event,
    watch_query,
    whole,
)

Object = dict[str, Any]
Params = dict[str, str]

KEEPALIVE: tuple[tuple[int, int, int], ...] = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)
"""A peer that is gone without a word is noticed within 30 s, also by a watch that has nothing to say for long."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach and convince one API server. ``repr`` hides the credentials."""

    server: str
    ca_pem: str = ""
    token: str = ""
    client_cert_pem: str = ""
    client_key_pem: str = ""
    tls_server_name: str = ""

    def __repr__(self) -> str:
        return f"Access(server={self.server!r})"


@dataclass(frozen=True, slots=True)
class Impersonated:
    """In whose name a request is made."""

    name: str
    groups: tuple[str, ...]

    @property
    def headers(self) -> Iterator[tuple[str, str]]:
        """UTF-8, as Kubernetes reads them; one header for each group."""
        yield "Impersonate-User", self.name.encode().decode("latin-1")
        for group in self.groups:
            yield "Impersonate-Group", group.encode().decode("latin-1")


class MemberClient:
    """Thread-safe; keep one per member and close it when the credentials change."""

    def __init__(
        self, access: Access, *, timeout_s: float = 10.0, pool: int = 8, private_ok: bool = True, cluster: str = ""
    ) -> None:
        """``private_ok``: whether the server may have a loopback or private address. ``cluster`` labels the metrics."""
        self.access = access
        self.cluster = cluster
        self._base = access.server.rstrip("/")
        self._timeout_s = timeout_s
        configuration = Configuration(host=self._base, connection_pool_maxsize=pool, retries=0)
        configuration.proxy = None
        self._pool = RESTClientObject(configuration).pool_manager
        self._pool.pool_classes_by_scheme = {
            "https": partial(_GuardedPool, private_ok=private_ok)  # type: ignore[dict-item]  # only ever called
        }
        self._streams: set[urllib3.BaseHTTPResponse] = set()
        self._streams_lock = threading.Lock()
        """Streams are opened and ended by threads of their own, while another one closes the client."""
        self._closed = False
        self._before_write: Callable[[], None] | None = None
        self._after_answer: Callable[[], None] | None = None
        self._pace: Callable[[], None] | None = None
        self._pool.connection_pool_kw["ssl_context"] = ssl_context(access)
        if access.tls_server_name:
            self._pool.connection_pool_kw["server_hostname"] = access.tls_server_name
            self._pool.connection_pool_kw["assert_hostname"] = access.tls_server_name
        self._headers = HTTPHeaderDict({"Accept": "application/json", "User-Agent": "convoy"})
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"

    def fenced(self, check: Callable[[], None], answered: Callable[[], None]) -> "MemberClient":
        """The same connections; ``check`` is called before each write, and prevents it by raising, ``answered`` after each
        answer."""
        fenced = copy.copy(self)
        fenced._before_write, fenced._after_answer = check, answered
        return fenced

    def in_name_of(self, person: Impersonated) -> "MemberClient":
        """The same connections; every request is made in the name of the person, with the person's rights."""
        theirs = copy.copy(self)
        theirs._headers = self._headers.copy()
        for name, value in person.headers:
            theirs._headers.add(name, value)
        return theirs

    def paced(self, wait: Callable[[], None]) -> "MemberClient":
        """The same connections; ``wait`` is called before each request for objects, and returns when it may be sent."""
        paced = copy.copy(self)
        paced._pace = wait
        return paced

    def get(self, path: str, params: Params | None = None, *, accept: str = "") -> Object:
        return self._json("GET", path, params, accept=accept)

    def get_text(self, path: str, params: Params | None = None) -> str:
        return self._call("GET", path, params).data.decode("utf-8", "replace")

    def get_bounded(self, path: str, *, most: int, within_s: float) -> bytes:
        """The answer of a program behind the member, which may be anybody's: as it is sent, never decompressed.

        Raises `MemberAway` for one that is longer than ``most`` bytes, or takes longer than ``within_s`` seconds.
        """
        if self._pace is not None:
            self._pace()
        headers, timeout = self._headers.copy(), urllib3.Timeout(connect=within_s, read=within_s)
        headers["Accept"], headers["Accept-Encoding"] = "text/plain", "identity"
        with deadlines.within(within_s):
            response = self._sent("GET", self._base + path, None, headers, timeout, within_s, stream=True)
            try:
                body = whole(response, most)
            except (TooLong, TimeoutError, urllib3.exceptions.TimeoutError) as e:
                raise errors.MemberAway(
                    f"the answer to GET {path} is longer than {most} bytes or {within_s:g} s"
                ) from e
            except (urllib3.exceptions.HTTPError, OSError) as e:
                raise errors.MemberAway(f"{self._base}: the answer broke: {type(e).__name__}") from e
            finally:
                response.close()
        if response.status >= 300:
            raise errors.from_answer(response.status, body)
        return body

    def list(self, path: str, params: Params | None = None) -> Object:
        """The whole collection, read page by page; ``metadata.resourceVersion`` is where a watch may start."""
        items: list[Object] = []
        answer: Object = {}
        for answer in self.pages(path, params):
            items += answer["items"]
        return {**answer, "items": items}

    def pages(self, path: str, params: Params | None = None) -> Iterator[Object]:
        """The same collection as `list`, but only one page of it in memory at a time."""
        query, until = {"limit": str(PAGE), **(params or {})}, perf_counter() + LONGEST_LIST_S
        answer = page(self.get(path, query))
        yield answer
        while token := next_page(answer):
            if perf_counter() > until:
                raise errors.MemberAway(f"{self._base}: the list of {path} does not end within {LONGEST_LIST_S:g} s")
            answer = page(self.get(path, {**query, "continue": token}))
            yield answer

    def create(self, path: str, body: Object) -> Object:
        return self._json("POST", path, None, body)

    def replace(self, path: str, body: Object) -> Object:
        return self._json("PUT", path, None, body)

    def merge_patch(self, path: str, body: Object) -> Object:
        return self._json("PATCH", path, None, body, content_type="application/merge-patch+json")

    def delete(
        self,
        path: str,
        *,
        propagation: str = "Background",
        uid: str = "",
        version: str = "",
        grace_s: int | None = None,
    ) -> Object:
        """Deletes; with ``uid`` only that very object, with ``version`` only as it was read (else `MemberChanged`)."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        wanted = {"uid": uid, "resourceVersion": version}
        if preconditions := {field: value for field, value in wanted.items() if value}:
            options["preconditions"] = preconditions
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        return self._json("DELETE", path, None, options)

    def watch(
        self,
        path: str,
        *,
        resource_version: str,
        params: Params | None = None,
        timeout_s: int = 300,
        opened: Callable[[], None] = lambda: None,
    ) -> Iterator[WatchEvent]:
        """Changes after ``resource_version`` until the server ends the stream; closing the iterator closes the socket.

        ``opened`` is called once the server has taken the watch: there may be nothing to say for long.
        """
        query = watch_query(params or {}, resource_version, timeout_s)
        for line in self.stream_lines(path, query, read_timeout_s=timeout_s + self._timeout_s, opened=opened):
            yield watch_event(line)

    def stream_lines(
        self,
        path: str,
        params: Params | None = None,
        *,
        read_timeout_s: float,
        opened: Callable[[], None] = lambda: None,
    ) -> Iterator[bytes]:
        """The answer line by line as it arrives (watches, logs), without the line ends; see `reading.LONGEST_LINE`."""
        response = self._call("GET", path, params, stream_s=read_timeout_s)
        with self._streams_lock:
            self._streams.add(response)
        try:
            if not self._closed:
                opened()
                yield from lines(response)
        except (urllib3.exceptions.HTTPError, OSError) as e:
            raise errors.MemberAway(f"{self._base}: the stream broke: {type(e).__name__}") from e
        finally:
            with self._streams_lock:
                self._streams.discard(response)
            response.close()

    def passing(self, method: str, target: str, headers: dict[str, str], body: bytes, *, idle_s: float) -> Passing:
        """The answer to this request as it comes, whatever its status; ``idle_s`` is how long it may be silent."""
        timeout = urllib3.Timeout(connect=self._timeout_s, read=idle_s)
        merged = self._headers.copy()
        for name, value in headers.items():
            merged[name] = value
        head_s = self._timeout_s + idle_s
        return Passing(self._sent(method, self._base + target, body or None, merged, timeout, head_s, stream=True))

    def close(self) -> None:
        """Ends every open stream, whichever thread reads it, and drops the connections."""
        self._closed = True
        with self._streams_lock:
            streams = list(self._streams)
        for response in streams:
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                response.shutdown()
        self._pool.clear()

    def _json(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: Object | None = None,
        *,
        content_type: str = "",
        accept: str = "",
    ) -> Object:
        # In this order: a claim may run out while the request waits for its turn.
        if self._pace is not None:
            self._pace()
        if method != "GET" and self._before_write is not None:
            self._before_write()
        response = self._call(
            method, path, params, body, content_type=content_type or "application/json", accept=accept
        )
        try:
            parsed = answers.parse(response.data)
        except ValueError as e:
            raise errors.MemberAway(f"{self._base}: the answer to {method} {path} is not JSON") from e
        if not isinstance(parsed, dict):
            raise errors.MemberAway(f"{self._base}: the answer to {method} {path} is not an object")
        return parsed

    def _call(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: Object | None = None,
        *,
        content_type: str = "",
        accept: str = "",
        stream_s: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """``stream_s``: the answer is a stream, which may be silent for so long."""
        headers = self._headers.copy()
        if accept:
            headers["Accept"] = accept
        if content_type and body is not None:
            headers["Content-Type"] = content_type
        url = self._base + path
        if params:
            url += "?" + urlencode(params)
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        stream, within_s = stream_s is not None, self._timeout_s + (LONGEST_ANSWER_S if stream_s is None else stream_s)
        timeout = (
            urllib3.Timeout(connect=self._timeout_s, read=stream_s)
            if stream
            else urllib3.Timeout(total=self._timeout_s)
        )
        response = self._sent(method, url, content, headers, timeout, within_s, stream=stream)
        if response.status >= 300:
            raise errors.from_answer(response.status, error_body(response) if stream else response.data)
        return response

    def _sent(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: HTTPHeaderDict,
        timeout: urllib3.Timeout,
        within_s: float,
        *,
        stream: bool,
    ) -> urllib3.BaseHTTPResponse:
        """With its body read, unless it is a stream: then only its head has to be there ``within_s`` seconds."""
        began = perf_counter()
        code = "unreachable"
        try:
            with deadlines.within(within_s):
                response = self._pool.urlopen(
                    method,
                    url,
                    body=body,
                    headers=headers,
                    timeout=timeout,
                    preload_content=False,
                    redirect=False,
                    retries=False,
                )
                code = str(response.status)
                if not stream:
                    response = self._kept(response)
            if self._after_answer is not None:
                self._after_answer()
            return response
        except TooLong as e:
            raise errors.MemberAway(f"{self._base}: the answer to {method} is {e}") from e
        except (urllib3.exceptions.HTTPError, OSError) as e:
            words = f"{self._base} cannot be reached: {causes.in_words(e)}"
            raise errors.MemberAway(words, raw=causes.raw(e)) from e
        finally:
            if self.cluster:
                verb = "STREAM" if stream else method
                metrics.MEMBER_REQUEST_SECONDS.labels(self.cluster, verb, code).observe(perf_counter() - began)

    def _kept(self, response: urllib3.BaseHTTPResponse) -> urllib3.BaseHTTPResponse:
        """The same with its body, as it was sent: Convoy asks for nothing compressed."""
        try:
            body = whole(response, LONGEST_ANSWER)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return urllib3.HTTPResponse(io.BytesIO(body), status=response.status)


class _GuardedConnection(HTTPSConnection):
    """Looks at whom it reached before it says anything."""

    private_ok = True

    def _new_conn(self) -> socket.socket:
        self.timeout = deadlines.at_most(self.timeout)
        sock = super()._new_conn()
        refusal = addresses.refusal(sock.getpeername()[0], private_ok=self.private_ok)
        if refusal:
            sock.close()
            raise urllib3.exceptions.NewConnectionError(self, refusal)
        return sock


class _PublicConnection(_GuardedConnection):
    private_ok = False


class _GuardedPool(HTTPSConnectionPool):
    def __init__(self, host: str, port: int | None = None, *, private_ok: bool, **kw: Any) -> None:
        self.ConnectionCls = _GuardedConnection if private_ok else _PublicConnection
        super().__init__(host, port, **kw, socket_options=KEEPALIVE)


def ssl_context(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.ca_pem or None)
        context.sslsocket_class = deadlines.TimedSocket
        if access.client_cert_pem:
            with _private_file(access.client_cert_pem + "\n" + access.client_key_pem) as path:
                context.load_cert_chain(path)
    except ssl.SSLError as e:
        raise errors.MemberDenied(f"the certificates for {access.server} cannot be read: {e.reason}") from e
    return context


@contextlib.contextmanager
def _private_file(text: str) -> Iterator[str]:
    """A file only we can read, gone again at once: OpenSSL loads client keys from files only."""
    fd, path = tempfile.mkstemp(prefix="convoy-")
    try:
        with os.fdopen(fd, "w") as handle:
            handle.write(text)
        yield path
    finally:
        Path(path).unlink()
