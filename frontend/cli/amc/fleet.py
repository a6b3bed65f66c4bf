"""A client of the fleet's Kubernetes API, and through its proxy of each cluster. No other module here opens connections.

An error of one cluster is a `Failure`, so that the other clusters can still be shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from frontend.cli.amc.kubeconfig import Connection
from frontend.cli.problems import Problem

if TYPE_CHECKING:
    import httpx

Object = dict[str, Any]
Params = Mapping[str, str]

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PAGE = "500"


class Failure(Problem):
    """An error response, printed as kubectl prints it. ``code`` 0 means that there was no response."""

    def __init__(self, message: str, *, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code, self.reason = code, reason

    @property
    def away(self) -> bool:
        return self.code in (0, 502, 503, 504)

    def __str__(self) -> str:
        return f"Error from server ({self.reason}): {self.message}" if self.reason else f"error: {self.message}"


class Fleet:
    def __init__(self, connection: Connection, *, timeout_s: float) -> None:
        import httpx

        headers = {"Authorization": f"Bearer {connection.token}"} if connection.token else {}
        self._http = httpx.Client(
            base_url=connection.server,
            verify=connection.tls,
            timeout=timeout_s,
            headers={**headers, "User-Agent": "kubectl-amc"},
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        )
        self._extensions = {"sni_hostname": connection.tls_server_name} if connection.tls_server_name else {}
        self.server, self.namespace = connection.server, connection.namespace

    def clusters(self) -> list[str]:
        items = self.get(CLUSTERS)["items"]
        return sorted(each["metadata"]["name"] for each in items)

    def member(self, name: str) -> Member:
        return Member(self, name)

    def get(self, path: str, params: Params | None = None, *, accept: str = "application/json") -> Object:
        return self._object("GET", path, params, accept)

    def delete(self, path: str, params: Params | None = None) -> Object:
        return self._object("DELETE", path, params, "application/json")

    @contextmanager
    def stream(
        self, path: str, params: Params, *, accept: str = "*/*", silence_s: float | None = None
    ) -> Iterator[Iterator[bytes]]:
        """The chunks of a response as they arrive. Fails if the server sends nothing for ``silence_s`` seconds."""
        import httpx

        timeout = httpx.Timeout(self._http.timeout.connect, read=silence_s)
        headers = {"Accept": accept}
        try:
            with self._http.stream(
                "GET", path, params=dict(params), headers=headers, timeout=timeout, extensions=self._extensions
            ) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    raise failure(answer)
                yield answer.iter_bytes()
        except httpx.HTTPError as e:
            raise Failure(_unreached(self.server, e)) from e

    def _object(self, method: str, path: str, params: Params | None, accept: str) -> Object:
        import httpx

        try:
            answer = self._http.request(
                method, path, params=dict(params or {}), headers={"Accept": accept}, extensions=self._extensions
            )
        except httpx.HTTPError as e:
            raise Failure(_unreached(self.server, e)) from e
        if answer.status_code >= 300:
            raise failure(answer)
        try:
            document = answer.json()
        except ValueError as e:
            raise Failure(f"{self.server} answered {path} with something that is not JSON") from e
        if not isinstance(document, dict):
            raise Failure(f"{self.server} answered {path} with something that is not a JSON object")
        return document


class Member:
    """A client of one cluster, through the fleet's proxy."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet, self.name = fleet, name
        self._root = f"{CLUSTERS}/{name}/proxy"

    def get(self, path: str, params: Params | None = None, *, accept: str = "application/json") -> Object:
        return self._fleet.get(self._root + path, params, accept=accept)

    def table(self, path: str, params: Params) -> Object:
        """A collection (all its pages) or one object as a table, with the columns of the cluster."""
        first = page = self.get(path, {**params, "limit": PAGE}, accept=TABLE)
        rows = list(page.get("rows") or [])
        while token := (page.get("metadata") or {}).get("continue"):
            page = self.get(path, {**params, "limit": PAGE, "continue": token}, accept=TABLE)
            rows += page.get("rows") or []
        return {**first, "rows": rows}

    def items(self, path: str, params: Params) -> list[Object]:
        """A collection (all its pages) or one object, as complete objects with their kinds."""
        objects: list[Object] = []
        token = ""
        while True:
            page = self.get(path, {**params, "limit": PAGE, **({"continue": token} if token else {})})
            if "items" not in page:
                return [page]
            kind = {"apiVersion": page.get("apiVersion"), "kind": str(page.get("kind") or "").removesuffix("List")}
            objects += [{**kind, **item} for item in page.get("items") or []]
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return objects

    def delete(self, path: str, params: Params | None = None) -> Object:
        return self._fleet.delete(self._root + path, params)

    @contextmanager
    def stream(self, path: str, params: Params) -> Iterator[Iterator[bytes]]:
        with self._fleet.stream(self._root + path, params) as chunks:
            yield chunks

    def changes(self, path: str, params: Params, *, seconds: int) -> Iterator[Object]:
        """The events of a watch as table rows. The watch ends after at most ``seconds``."""
        query = {**params, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        rest = b""
        with self._fleet.stream(self._root + path, query, accept=TABLE, silence_s=seconds + 30.0) as chunks:
            for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (_event(line) for line in lines if line.strip())


def _event(line: bytes) -> Object:
    try:
        event: Object = json.loads(line)
    except ValueError as e:
        raise Failure("the watch sent something that is not JSON") from e
    return event


def failure(answer: httpx.Response) -> Failure:
    try:
        status = answer.json()
    except ValueError:
        status = {}
    status = status if isinstance(status, dict) else {}
    message = str(status.get("message") or f"the server answered {answer.status_code}")
    return Failure(message, code=answer.status_code, reason=str(status.get("reason") or "InternalError"))


def _unreached(server: str, e: Exception) -> str:
    return f"{server} cannot be reached: {str(e) or type(e).__name__}"
