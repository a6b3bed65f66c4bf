"""A few calls of the product's own REST API, as any client would make them: a bearer token and JSON."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deploy.bootstrap.problems import Problem

TIMEOUT_S = 30.0
TRIES = 20
PAUSE_S = 0.5
BUSY = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and what came with it."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def said(self) -> str:
        """The problem in the server's own words."""
        if isinstance(self.body, dict):
            return str(self.body.get("detail") or self.body.get("title") or self.body)
        return str(self.body)


class Api:
    """``/api/v1/`` of a product on this machine.

    A request that gets no answer is sent again as long as ``patience`` lets it: every request here may be repeated.
    """

    def __init__(self, port: int, token: str, patience: Callable[[], None] = lambda: None) -> None:
        self.root = f"http://127.0.0.1:{port}/api/v1/"
        self.token = token
        self.patience = patience

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, None, "application/json")

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        return self._ask("POST", path, json.dumps(body).encode(), "application/json")

    def delete(self, path: str) -> Answer:
        return self._ask("DELETE", path, None, "application/json")

    def apply(self, manifests: bytes) -> Answer:
        return self._ask("POST", "apply", manifests, "application/yaml")

    def results(self, path: str) -> list[dict[str, Any]]:
        answer = self.get(path)
        if not answer.ok:
            raise Problem(f"The product refused {path}: {answer.said}")
        return list(answer.body["results"])

    def _ask(self, method: str, path: str, body: bytes | None, kind: str) -> Answer:
        request = urllib.request.Request(self.root + path, data=body, method=method)  # noqa: S310
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", kind)
        request.add_header("Accept", "application/json, application/problem+json")
        fault: object = ""
        for _ in range(TRIES):
            try:
                answer = self._once(request)
            except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
                fault = error
            else:
                if answer.status not in BUSY:
                    return answer
                fault = answer.said
            self.patience()
            time.sleep(PAUSE_S)
        raise Problem(f"The product does not answer at {self.root}{path} after {TRIES} tries: {fault}")

    def _once(self, request: urllib.request.Request) -> Answer:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                return Answer(answer.status, decode(answer.read()))
        except urllib.error.HTTPError as error:
            return Answer(error.code, decode(error.read()))


def decode(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")[:300]
